package org.ggmlext.ext;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.StringReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import javax.xml.parsers.DocumentBuilderFactory;
import org.ggmlext.Graph;
import org.ggmlext.Shape;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;
import org.xml.sax.InputSource;

class PlanSvgTest {
  private static final int F32 = 0;

  /** Two native nodes, a kernel, a group of two. */
  private static final Plan PLAN =
      new Plan(
          "CPU",
          List.of(
              node("kq", "MUL_MAT"),
              node("scaled", "SCALE"),
              node("weights", "app.swish.v1"),
              node("product", "MUL"),
              node("sum", "ADD")),
          List.of(
              new Plan.Step(0, 2, null, false, 0, 4, 0, 0),
              new Plan.Step(2, 1, "app.swish.java", false, 0, 4, 50_000, 1),
              new Plan.Step(3, 2, "app.mul_add", true, 2048, 4, 100_000, 4)),
          List.of(new Plan.Refusal(1, "app.scale", "does not support it: only F16")),
          2048,
          true,
          4);

  private static Plan.Node node(String name, String op) {
    return new Plan.Node(name, op, F32, Shape.of(64, 7));
  }

  private static Plan of(List<Plan.Node> nodes) {
    List<Plan.Step> steps =
        IntStream.range(0, nodes.size())
            .mapToObj(i -> new Plan.Step(i, 1, "k" + i, false, 0, 1, 1000, 1))
            .toList();
    return new Plan("CPU", nodes, steps, List.of(), 0, true, 1);
  }

  private static Document parse(String svg) throws Exception {
    return DocumentBuilderFactory.newInstance()
        .newDocumentBuilder()
        .parse(new InputSource(new StringReader(svg)));
  }

  private static List<Element> elements(Document document, String tag) {
    NodeList found = document.getElementsByTagName(tag);
    return IntStream.range(0, found.getLength()).mapToObj(i -> (Element) found.item(i)).toList();
  }

  private static List<String> texts(Document document, String tag) {
    return elements(document, tag).stream().map(Element::getTextContent).toList();
  }

  private static List<Element> boxes(Document document, String css) {
    return elements(document, "rect").stream()
        .filter(rect -> rect.getAttribute("class").equals(css) && height(rect) > 20)
        .toList();
  }

  private static int height(Element rect) {
    return rect.getAttribute("height").equals("100%")
        ? 0
        : Integer.parseInt(rect.getAttribute("height"));
  }

  @Test
  @DisplayName("JAVA-7: the picture shows each node, what computed it, workspace and times")
  void shows() throws Exception {
    Document svg = parse(PLAN.toSvg());
    assertThat(
            svg.getDocumentElement().getNamespaceURI() == null
                ? svg.getDocumentElement().getAttribute("xmlns")
                : svg.getDocumentElement().getNamespaceURI())
        .isEqualTo("http://www.w3.org/2000/svg");
    assertThat(texts(svg, "text"))
        .contains("CPU", "MUL_MAT", "kq", "F32 [64, 7]", "app.swish.java", "app.mul_add")
        .contains("50.0 µs", "25.0 µs", "fused, 2 nodes · 2.0 KiB scratch", "1 refused")
        .contains(
            "5 nodes in 3 steps · planned before allocation · computed 4 times"
                + " · workspace 2.0 KiB · 1 refusal");
    assertThat(boxes(svg, "native")).hasSize(1);
    assertThat(boxes(svg, "kernel")).hasSize(1);
    assertThat(boxes(svg, "fused")).hasSize(1);
  }

  @Test
  @DisplayName("JAVA-7: of ten executions of which one was timed the plan shows the time of one")
  void timeOfTimed() throws Exception {
    float[] values = Workbench.values(4096);
    String name = Workbench.unique("app.sqr_slowly");
    long pauseNanos = 20_000_000;
    Kernel kernel =
        Kernel.builder(name, "SQR")
            .execute(
                execution -> {
                  LockSupport.parkNanos(pauseNanos);
                  for (long i = 0; i < values.length; i++) {
                    float x = execution.src(0).getFloat(i, 0, 0, 0);
                    execution.dst().setFloat(i, 0, 0, 0, x * x);
                  }
                });
    try (Workbench bench = new Workbench()) {
      bench.register(kernel);
      Graph graph = bench.graph(bench.nodes.sqr(bench.input(values, values.length)));
      for (int i = 0; i < 9; i++) {
        bench.scheduler.compute(graph);
      }
      bench.ext.setProfiling(true);
      bench.scheduler.compute(graph);
      bench.ext.setProfiling(false);
      Plan plan = bench.ext.plans(bench.backend).getFirst();
      Plan.Step step = plan.stepsOf(name).getFirst();
      assertThat(step.executed()).isEqualTo(10);
      assertThat(step.nanos()).isGreaterThanOrEqualTo(pauseNanos);
      assertThat(step.timed()).isEqualTo(1);
      assertThat(step.nanosEach()).isEqualTo(step.nanos());
      Document svg = parse(plan.toSvg());
      assertThat(texts(svg, "text"))
          .contains(String.format(Locale.ROOT, "%.1f ms", step.nanos() / 1e6));
      assertThat(texts(svg, "title"))
          .anyMatch(title -> title.contains("executed 10 times, 1 of them timed: "));
      assertThat(plan.toString())
          .contains(String.format(Locale.ROOT, "  %.1f us%n", step.nanos() / 1e3));
    }
  }

  @Test
  @DisplayName("JAVA-7: a refusal's reason is the title of its node, which shows under the mouse")
  void refusals() throws Exception {
    Document svg = parse(PLAN.toSvg());
    Element title =
        elements(svg, "title").stream()
            .filter(element -> element.getTextContent().contains("only F16"))
            .findFirst()
            .orElseThrow();
    assertThat(title.getTextContent()).contains("SCALE", "not on app.scale");
    assertThat(title.getParentNode().getTextContent()).contains("1 refused", "scaled");
  }

  @Test
  @DisplayName("JAVA-7: boxes follow each other without overlap, inside of the picture")
  void layout() throws Exception {
    List<Plan.Node> nodes = new ArrayList<>();
    for (int i = 0; i < 300; i++) {
      nodes.add(node("n" + i, "ADD"));
    }
    Document svg = parse(Plan.toSvg(List.of(PLAN, of(nodes), PLAN)));
    int width = Integer.parseInt(svg.getDocumentElement().getAttribute("width"));
    int height = Integer.parseInt(svg.getDocumentElement().getAttribute("height"));
    int end = 0;
    int found = 0;
    for (Element rect : elements(svg, "rect")) {
      if (List.of("native", "kernel", "fused").contains(rect.getAttribute("class"))) {
        int y = Integer.parseInt(rect.getAttribute("y"));
        assertThat(y).isGreaterThanOrEqualTo(end);
        end = y + height(rect);
        found++;
        int x = Integer.parseInt(rect.getAttribute("x"));
        assertThat(x + Integer.parseInt(rect.getAttribute("width"))).isLessThanOrEqualTo(width);
      }
    }
    assertThat(found).isEqualTo(306);
    assertThat(end).isLessThanOrEqualTo(height);
  }

  @Test
  @DisplayName("JAVA-7: names with markup, control characters and lone surrogates give valid XML")
  void hostileNames() throws Exception {
    String name = "a<b>&\"c\" \u0000\u001b\ud800]]>";
    Document svg = parse(of(List.of(node(name, "ADD"))).toSvg());
    assertThat(texts(svg, "text")).contains("a<b>&\"c\" \ufffd\ufffd\ufffd]]>");
  }

  @Test
  @DisplayName("JAVA-7: long names are cut, and whole under the mouse; unknown types have numbers")
  void longNames() throws Exception {
    String name = "x".repeat(60);
    Plan.Node node = new Plan.Node(name, "ADD", 9999, Shape.of(2));
    Document svg = parse(of(List.of(node)).toSvg());
    assertThat(texts(svg, "text")).contains("x".repeat(21) + "…", "type 9999 [2]");
    assertThat(texts(svg, "title")).anyMatch(title -> title.contains(name));
  }
}
