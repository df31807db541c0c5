package org.ggmlext.ext;

import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Runs what a description says: no code of the description's author runs after planning. */
final class CudaBody implements WholeBody {
  private final CudaDescription description;

  /** The launches of one planned step, in memory of its own. */
  private record Planned(Arena arena, List<NativeLaunch> launches) {}

  CudaBody(CudaDescription description) {
    this.description = Objects.requireNonNull(description, "description");
  }

  @Override
  public Prepared prepare(PrepareContext context) throws Exception {
    if (context.dst().elements() == 0) {
      return Prepared.NOTHING; // it is never executed
    }
    CudaStep step = description.describe(context);
    Objects.requireNonNull(step, "a description returned null, expected a CudaStep");
    step.launches().forEach(launch -> launch.checkTensors(context, step.workspaceBytes()));
    Arena arena = Arena.ofShared();
    List<NativeLaunch> launches = new ArrayList<>();
    for (CudaLaunch launch : step.launches()) {
      launches.add(new NativeLaunch(launch, arena));
    }
    return Prepared.NOTHING
        .withWorkspace(step.workspaceBytes())
        .withState(new Planned(arena, launches));
  }

  @Override
  public void execute(Execution execution) {
    for (NativeLaunch launch : execution.state(Planned.class).launches()) {
      launch.run(execution);
    }
  }

  @Override
  public void destroy(@Nullable Object state) {
    if (state instanceof Planned planned) {
      planned.arena().close();
    }
  }
}
