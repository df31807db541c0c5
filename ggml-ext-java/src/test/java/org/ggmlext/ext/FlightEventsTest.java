package org.ggmlext.ext;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.ggmlext.Graph;
import org.ggmlext.Tensor;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FlightEventsTest {
  @TempDir Path folder;

  private static Kernel cube(String name, Operator<NoAttributes> operator) {
    return Kernel.rows(
        name,
        operator,
        (task, first, end) -> {
          for (long row = first; row < end; row++) {
            for (long i = 0; i < task.dst().ne(0); i++) {
              float x = task.src(0).getFloat(i, row, 0, 0);
              task.dst().setFloat(i, row, 0, 0, x * x * x);
            }
          }
        });
  }

  private static Operator<NoAttributes> operator() {
    return Operator.of(
        Workbench.unique("test.cube.v"), (sources, none) -> OutputSpec.like(sources.getFirst()));
  }

  private static List<RecordedEvent> events(Path file, String name) throws Exception {
    return RecordingFile.readAllEvents(file).stream()
        .filter(event -> event.getEventType().getName().equals(name))
        .sorted(Comparator.comparing(RecordedEvent::getStartTime))
        .toList();
  }

  @Test
  @DisplayName("JAVA-7: Flight Recorder gets computes, plans and a kernel's counters")
  void events() throws Exception {
    Operator<NoAttributes> operator = operator();
    String name = Workbench.unique("test.cube");
    Path file = folder.resolve("run.jfr");
    Plan plan;
    try (Recording recording = new Recording()) {
      recording.enable("org.ggmlext.Compute").withoutStackTrace();
      recording.enable("org.ggmlext.Plan");
      recording.enable("org.ggmlext.Kernel");
      recording.start();
      try (Workbench bench = new Workbench()) {
        bench.register(operator);
        bench.register(cube(name, operator));
        Tensor x = bench.input(new float[] {1, 2, 3}, 3);
        Graph graph = bench.graph(operator.create(bench.nodes, bench.nodes.sqr(x)));
        for (int i = 0; i < 3; i++) {
          bench.scheduler.compute(graph);
        }
        plan = bench.ext.plans(bench.backend).getFirst();
      }
      recording.stop();
      recording.dump(file);
    }

    List<RecordedEvent> computes = events(file, "org.ggmlext.Compute");
    assertThat(computes).hasSize(3);
    assertThat(computes.getFirst().getInt("nodes")).isEqualTo(2);
    assertThat(computes.getFirst().getString("backends")).isEqualTo("CPU");

    List<RecordedEvent> plans = events(file, "org.ggmlext.Plan");
    assertThat(plans).hasSize(1);
    RecordedEvent event = plans.getFirst();
    assertThat(event.getString("backend")).isEqualTo(plan.backend());
    assertThat(event.getInt("nodes")).isEqualTo(2);
    assertThat(event.getInt("extensionSteps")).isEqualTo(1);
    assertThat(event.getInt("fusedGroups")).isZero();
    assertThat(event.getBoolean("beforeAllocation")).isTrue();
    assertThat(event.getString("text")).contains(name, "SQR");

    RecordedEvent last =
        events(file, "org.ggmlext.Kernel").stream()
            .filter(kernel -> kernel.getString("kernel").equals(name))
            .toList()
            .getLast();
    assertThat(last.getLong("executed")).isEqualTo(3);
    assertThat(last.getLong("failed")).isZero();
  }

  @Test
  @DisplayName("JAVA-7: a command writes the pictures of a recording, large ones too")
  void pictures() throws Exception {
    Operator<NoAttributes> operator = operator();
    Path file = folder.resolve("run.jfr");
    List<Plan> plans = new ArrayList<>();
    try (Recording recording = new Recording()) {
      recording.enable("org.ggmlext.PlanPicture");
      recording.start();
      try (Workbench bench = new Workbench()) {
        bench.register(operator);
        bench.register(cube(Workbench.unique("test.cube"), operator));
        Tensor x = bench.input(new float[] {0.5f}, 1);
        for (int length : new int[] {1, 900}) {
          Tensor y = x;
          for (int i = 0; i < length; i++) {
            y = operator.create(bench.nodes, bench.nodes.sqr(y));
          }
          bench.scheduler.compute(bench.nodes.newGraph(2000).expand(y.asOutput()));
          plans.add(bench.ext.plans(bench.backend).getFirst());
        }
      }
      recording.stop();
      recording.dump(file);
    }
    List<Path> written = PlanPictures.write(file, folder.resolve("pictures"));
    assertThat(written)
        .extracting(path -> path.getFileName().toString())
        .containsExactly("plan-1.svg", "plan-2.svg");
    for (int i = 0; i < 2; i++) {
      assertThat(Files.readString(written.get(i))).isEqualTo(plans.get(i).toSvg());
    }
  }

  @Test
  @DisplayName("JAVA-7: a recording that begins later has the plans that are there, once each")
  void laterRecording() throws Exception {
    Operator<NoAttributes> operator = operator();
    Path file = folder.resolve("run.jfr");
    try (Workbench bench = new Workbench();
        Recording recording = new Recording()) {
      bench.register(operator);
      bench.register(cube(Workbench.unique("test.cube"), operator));
      Tensor x = bench.input(new float[] {1, 2, 3}, 3);
      Graph graph = bench.graph(operator.create(bench.nodes, bench.nodes.sqr(x)));
      bench.scheduler.compute(graph);
      recording.enable("org.ggmlext.Plan");
      recording.start();
      bench.scheduler.compute(graph);
      bench.scheduler.compute(graph);
      recording.stop();
      recording.dump(file);
    }
    assertThat(events(file, "org.ggmlext.Plan")).hasSize(1);
  }

  private static BackendStats stats(long recorded, long reused, long replayed) {
    return new BackendStats(3, 0, 9, 0, 0, 0, 0, recorded, reused, replayed);
  }

  @Test
  @DisplayName(
      "JAVA-7: a capture is told of when counters of recordings have grown, replays alone not")
  void captures() throws Exception {
    Path file = folder.resolve("run.jfr");
    try (Recording recording = new Recording()) {
      recording.enable("org.ggmlext.Capture");
      recording.start();
      FlightEvents.capture("CUDA0", null, stats(0, 0, 0));
      FlightEvents.capture("CUDA0", stats(0, 0, 0), stats(1, 0, 0));
      FlightEvents.capture("CUDA0", stats(1, 0, 0), stats(1, 0, 7));
      FlightEvents.capture("CUDA0", stats(1, 0, 7), stats(1, 2, 9));
      recording.stop();
      recording.dump(file);
    }
    List<RecordedEvent> captures = events(file, "org.ggmlext.Capture");
    assertThat(captures).hasSize(2);
    assertThat(captures.get(0).getString("backend")).isEqualTo("CUDA0");
    assertThat(captures.get(0).getLong("recorded")).isEqualTo(1);
    assertThat(captures.get(1).getLong("reused")).isEqualTo(2);
    assertThat(captures.get(1).getLong("replayed")).isEqualTo(9);
  }

  @Test
  @DisplayName("JAVA-7: a recording without pictures gives none")
  void noPictures() throws Exception {
    Path file = folder.resolve("run.jfr");
    try (Recording recording = new Recording()) {
      recording.start();
      recording.stop();
      recording.dump(file);
    }
    assertThat(PlanPictures.write(file, folder)).isEmpty();
  }

  @Test
  @DisplayName("JAVA-7: a scheduler whose backend is closed is recorded as well")
  void closedBackend() throws Exception {
    Path file = folder.resolve("run.jfr");
    try (Recording recording = new Recording();
        Workbench bench = new Workbench()) {
      recording.enable("org.ggmlext.Compute").withoutStackTrace();
      recording.enable("org.ggmlext.Plan");
      recording.start();
      Operator<NoAttributes> operator = operator();
      bench.register(operator);
      bench.register(cube(Workbench.unique("test.cube"), operator));
      Tensor y = operator.create(bench.nodes, bench.input(new float[] {1, 2, 3}, 3));
      bench.backend.close();
      assertThat(bench.compute(y)).containsExactly(1, 8, 27);
      recording.stop();
      recording.dump(file);
    }
    List<RecordedEvent> computes = events(file, "org.ggmlext.Compute");
    assertThat(computes).hasSize(1);
    assertThat(computes.getFirst().getString("backends")).isEqualTo("CPU");
    assertThat(events(file, "org.ggmlext.Plan")).hasSize(1);
  }

  @Test
  @DisplayName("JAVA-7: a missing file and one that is no recording are a line each, and status 1")
  void noRecording() throws Exception {
    Path text = Files.writeString(folder.resolve("text.jfr"), "no recording");
    Path missing = folder.resolve("missing.jfr");
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    PrintStream err = new PrintStream(bytes, true, StandardCharsets.UTF_8);
    String pictures = folder.resolve("pictures").toString();
    assertThat(PlanPictures.run(new String[] {missing.toString(), pictures}, err, err)).isOne();
    assertThat(PlanPictures.run(new String[] {text.toString(), pictures}, err, err)).isOne();
    assertThat(PlanPictures.run(new String[0], err, err)).isEqualTo(2);
    assertThat(bytes.toString(StandardCharsets.UTF_8).lines())
        .hasSize(3)
        .first()
        .isEqualTo(missing + ": there is no such file");
    assertThat(bytes.toString(StandardCharsets.UTF_8)).contains(text + ": ", "usage: ");
    assertThat(Path.of(pictures)).doesNotExist();
  }
}
