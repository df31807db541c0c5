package org.ggmlext.ext;

import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import org.ggmlext.Type;
import org.jspecify.annotations.Nullable;

/** Draws plans: a panel for each, a box for each step, a line for each node. */
final class PlanSvg {
  private static final int WIDTH = 1160;
  private static final int MARGIN = 24;
  private static final int LINE = 22;
  private static final int PADDING = 5;
  private static final int GAP = 6;

  // Columns, from the left.
  private static final int NUMBER = 66;
  private static final int OP = 78;
  private static final int NAME = 250;
  private static final int SHAPE = 440;
  private static final int REFUSED = 640;
  private static final int KERNEL = 730;
  private static final int BAR = 970;
  private static final int BAR_WIDTH = 50;

  private static final String STYLE =
      """
      <style>
        text { font: 13px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2933 }
        .title { font-size: 18px; font-weight: 600 }
        .backend { font-size: 15px; font-weight: 600 }
        .quiet { fill: #66727f }
        .code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 12px }
        .number { font-size: 11px; fill: #8a95a1; text-anchor: end }
        .native { fill: #f4f5f7 } .native-edge { fill: #b6bec7 }
        .kernel { fill: #e8f1fd } .kernel-edge { fill: #2673d9 } .kernel-name { fill: #1a56a8 }
        .fused { fill: #f2eafd } .fused-edge { fill: #7d46d6 } .fused-name { fill: #5c2db0 }
        .refused { fill: #ffedd1 } .refused-text { fill: #8f4d00; font-size: 11px }
        .bar { fill: #2673d9; opacity: 0.55 }
        .time { font-size: 12px }
      </style>
      """;

  private final StringBuilder svg = new StringBuilder();
  private final double longest;
  private int y;

  private PlanSvg(double longest) {
    this.longest = longest;
  }

  static String draw(List<Plan> plans) {
    double longest =
        plans.stream()
            .flatMap(plan -> plan.steps().stream())
            .mapToDouble(PlanSvg::time)
            .max()
            .orElse(0);
    PlanSvg picture = new PlanSvg(longest);
    picture.head(plans.size());
    plans.forEach(picture::panel);
    int height = picture.y + MARGIN - GAP;
    return """
    <svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">
    %s<rect width="100%%" height="100%%" fill="#ffffff"/>
    %s</svg>
    """
        .formatted(WIDTH, height, WIDTH, height, STYLE, picture.svg);
  }

  private void head(int plans) {
    y = MARGIN + 14;
    text(MARGIN, y, "title", plans == 1 ? "Plan" : plans + " plans, in the order of their splits");
    int x = 640;
    x = legend(x, "native-edge", "ggml's own kernels", 164);
    x = legend(x, "kernel-edge", "extension", 98);
    x = legend(x, "fused-edge", "fused", 70);
    legend(x, "refused", "refusals (hover)", 0);
    y += 22;
  }

  private int legend(int x, String css, String label, int width) {
    rect(x, y - 11, 12, 12, 3, css);
    text(x + 18, y, "quiet", label);
    return x + width;
  }

  private void panel(Plan plan) {
    y += 16;
    text(MARGIN, y, "backend", plan.backend());
    y += 20;
    text(MARGIN, y, "quiet", summary(plan));
    y += 12;
    plan.steps().forEach(step -> step(plan, step));
  }

  private static String summary(Plan plan) {
    return "%s in %s · planned %s · computed %s%s%s"
        .formatted(
            count(plan.nodes().size(), "node"),
            count(plan.steps().size(), "step"),
            plan.beforeAllocation() ? "before allocation" : "at compute",
            count(plan.computed(), "time"),
            plan.workspaceBytes() == 0 ? "" : " · workspace " + bytes(plan.workspaceBytes()),
            plan.refusals().isEmpty() ? "" : " · " + count(plan.refusals().size(), "refusal"));
  }

  private void step(Plan plan, Plan.Step step) {
    String details = details(step);
    int lines = Math.max(step.count(), details.isEmpty() ? 1 : 2);
    int height = lines * LINE + 2 * PADDING;
    String css = step.kernel() == null ? "native" : step.fused() ? "fused" : "kernel";
    svg.append("<g>");
    title(hover(step));
    rect(MARGIN, y, WIDTH - 2 * MARGIN, height, 6, css);
    rect(MARGIN, y, 5, height, 2, css + "-edge");
    int baseline = y + PADDING + 15;
    String kernel = step.kernel();
    if (kernel != null) {
      text(KERNEL, baseline, css + "-name", cut(kernel, 34));
      text(KERNEL, baseline + LINE, "quiet", details);
      bar(step, baseline);
    }
    svg.append("</g>\n");
    for (int i = 0; i < step.count(); i++) {
      node(plan, step.first() + i, baseline + i * LINE);
    }
    y += height + GAP;
  }

  private static String details(Plan.Step step) {
    String fused = step.fused() ? "fused, " + count(step.count(), "node") : "";
    String scratch = step.workspaceBytes() == 0 ? "" : bytes(step.workspaceBytes()) + " scratch";
    return fused.isEmpty() || scratch.isEmpty() ? fused + scratch : fused + " · " + scratch;
  }

  private static String hover(Plan.Step step) {
    String kernel = step.kernel();
    if (kernel == null) {
      return "ggml's own kernels, " + count(step.count(), "node");
    }
    String time =
        step.timed() == 0
            ? ""
            : ", %d of them timed: %s each".formatted(step.timed(), microseconds(time(step)));
    return "%s\nexecuted %s%s".formatted(kernel, count(step.executed(), "time"), time);
  }

  private void bar(Plan.Step step, int baseline) {
    double time = time(step);
    if (time > 0) {
      rect(BAR, baseline - 10, Math.max(2, (int) (BAR_WIDTH * time / longest)), 12, 2, "bar");
      text(BAR + BAR_WIDTH + 6, baseline, "time", microseconds(time));
    }
  }

  private void node(Plan plan, int index, int baseline) {
    Plan.Node node = plan.nodes().get(index);
    List<Plan.Refusal> refusals =
        plan.refusals().stream().filter(refusal -> refusal.node() == index).toList();
    svg.append("<g>");
    title(hover(node, refusals));
    text(NUMBER, baseline, "number", String.valueOf(index));
    text(OP, baseline, "code", cut(node.op(), 23));
    text(NAME, baseline, "quiet", cut(node.name(), 22));
    text(SHAPE, baseline, "code quiet", type(node.typeId()) + " " + node.shape());
    if (!refusals.isEmpty()) {
      rect(REFUSED, baseline - 13, 74, 18, 9, "refused");
      text(REFUSED + 10, baseline, "refused-text", refusals.size() + " refused");
    }
    svg.append("</g>\n");
  }

  private static String hover(Plan.Node node, List<Plan.Refusal> refusals) {
    return "%s \"%s\"%s"
        .formatted(
            node.op(),
            node.name(),
            refusals.stream()
                .map(refusal -> "\nnot on " + refusal.kernel() + ": " + refusal.reason())
                .collect(Collectors.joining()));
  }

  /** Microseconds of an execution, 0 where none was timed. */
  private static double time(Plan.Step step) {
    return step.nanosEach() / 1e3;
  }

  private static String type(int id) {
    try {
      return Type.of(id).toString();
    } catch (IllegalArgumentException e) {
      return "type " + id; // of a newer ggml
    }
  }

  private static String count(long n, String what) {
    return n + " " + what + (n == 1 ? "" : "s");
  }

  private static String bytes(long n) {
    if (n < 1024) {
      return n + " B";
    }
    return n < 1024 * 1024
        ? String.format(Locale.ROOT, "%.1f KiB", n / 1024.0)
        : String.format(Locale.ROOT, "%.1f MiB", n / (1024.0 * 1024));
  }

  private static String microseconds(double time) {
    return time < 1000
        ? String.format(Locale.ROOT, "%.1f µs", time)
        : time < 1e6
            ? String.format(Locale.ROOT, "%.1f ms", time / 1e3)
            : String.format(Locale.ROOT, "%.1f s", time / 1e6);
  }

  private static String cut(String text, int length) {
    return text.length() <= length ? text : text.substring(0, length - 1) + "…";
  }

  private void rect(int x, int y, int width, int height, int radius, String css) {
    svg.append(
        "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"%d\" class=\"%s\"/>"
            .formatted(x, y, width, height, radius, css));
  }

  private void text(int x, int y, String css, String text) {
    if (!text.isEmpty()) {
      svg.append("<text x=\"%d\" y=\"%d\" class=\"%s\">".formatted(x, y, css));
      svg.append(escape(text)).append("</text>");
    }
  }

  private void title(String text) {
    svg.append("<title>").append(escape(text)).append("</title>");
  }

  /** XML has no way to write most control characters, and names may hold any. */
  private static String escape(String text) {
    StringBuilder out = new StringBuilder(text.length());
    text.codePoints().forEach(c -> out.append(escaped(c)));
    return out.toString();
  }

  private static String escaped(int c) {
    @Nullable String named =
        switch (c) {
          case '<' -> "&lt;";
          case '>' -> "&gt;";
          case '&' -> "&amp;";
          case '"' -> "&quot;";
          case '\n' -> "\n";
          default -> null;
        };
    if (named != null) {
      return named;
    }
    boolean valid =
        c >= 0x20 && c <= 0xD7FF || c >= 0xE000 && c <= 0xFFFD || c >= 0x10000 && c <= 0x10FFFF;
    return valid ? Character.toString(c) : "\uFFFD";
  }
}
