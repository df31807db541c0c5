package org.ggmlext.ext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.ggmlext.ext.CudaArgument.dst;
import static org.ggmlext.ext.CudaArgument.of;
import static org.ggmlext.ext.CudaArgument.src;
import static org.ggmlext.ext.CudaArgument.struct;
import static org.ggmlext.ext.CudaArgument.workspace;

import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** What a description checks before any device is asked. */
class CudaLaunchTest {
  private static final CudaFunction FUNCTION =
      new CudaFunction(null, "f", List.of(8L, 8L, 4L), 256, 32, 0, 0);
  private static final Dim3 ONE = Dim3.of(1);

  @Test
  @DisplayName("AOT-1: number and sizes of arguments are those of the function, or named")
  void arguments() {
    CudaLaunch launch = CudaLaunch.of(FUNCTION, ONE, Dim3.of(256), src(0), dst(), of(3));
    assertThat(launch.arguments()).hasSize(3);
    assertThat(launch.withSharedMemory(512).sharedMemory()).isEqualTo(512);
    assertThat(launch.early()).isFalse();
    assertThat(launch.withEarlyBegin().withSharedMemory(512))
        .isEqualTo(launch.withSharedMemory(512).withEarlyBegin())
        .extracting(CudaLaunch::early)
        .isEqualTo(true);
    assertThatThrownBy(() -> CudaLaunch.of(FUNCTION, ONE, ONE, src(0), dst()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("f has 3 parameters, of [8, 8, 4] bytes, but got 2 arguments: [src(0), dst()]");
    assertThatThrownBy(() -> CudaLaunch.of(FUNCTION, ONE, ONE, src(0), dst(), of(3L)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("f: argument 2, long 3, has 8 bytes, but the parameter has 4");
    assertThatThrownBy(() -> CudaLaunch.of(FUNCTION, ONE, ONE, of(1f), workspace(), of(3)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("f: argument 0, float 1.0, has 4 bytes, but the parameter has 8");
    assertThat(CudaLaunch.of(FUNCTION, ONE, ONE, struct(new byte[8]), of(1.5), struct(new byte[4])))
        .isNotNull();
    assertThatThrownBy(() -> workspace(-1)).isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  @DisplayName("AOT-1: grids and blocks that no device takes are refused")
  void extents() {
    assertThatThrownBy(() -> Dim3.of(0)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> new Dim3(1, 1, -1)).hasMessageContaining("1 x 1 x -1");
    assertThatThrownBy(() -> launch(new Dim3(1, 65_536, 1), ONE))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("1 x 65536 x 1");
    assertThat(launch(new Dim3(Integer.MAX_VALUE, 65_535, 65_535), ONE)).isNotNull();
    assertThatThrownBy(() -> launch(ONE, Dim3.of(128, 3)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("128 x 3 x 1 threads, expected at most 256");
    assertThatThrownBy(() -> launch(ONE, new Dim3(1, 1, 65)))
        .isInstanceOf(IllegalArgumentException.class);
    assertThat(launch(ONE, new Dim3(2, 2, 64))).isNotNull();
    assertThatThrownBy(() -> launch(ONE, new Dim3(1 << 30, 1 << 30, 16))) // 2^64 threads
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("expected at most 256");
    assertThatThrownBy(
            () -> new CudaLaunch(FUNCTION, ONE, ONE, -1, List.of(src(0), dst(), of(0)), false))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("sharedMemory is -1");
  }

  private static CudaLaunch launch(Dim3 grid, Dim3 block) {
    return CudaLaunch.of(FUNCTION, grid, block, src(0), dst(), of(0));
  }

  @Test
  @DisplayName("AOT-1: as many blocks as give each thing a thread")
  void covering() {
    assertThat(Dim3.covering(1, 128)).isEqualTo(Dim3.of(1));
    assertThat(Dim3.covering(128, 128)).isEqualTo(Dim3.of(1));
    assertThat(Dim3.covering(129, 128)).isEqualTo(Dim3.of(2));
    assertThat(Dim3.covering(Integer.MAX_VALUE * 2L, 2)).isEqualTo(Dim3.of(Integer.MAX_VALUE));
    assertThatThrownBy(() -> Dim3.covering(Integer.MAX_VALUE * 2L + 1, 2))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> Dim3.covering(0, 2)).isInstanceOf(IllegalArgumentException.class);
    assertThat(new Dim3(1024, 65_535, 65_535).volume()).isEqualTo(1024L * 65_535 * 65_535);
    assertThat(new Dim3(1 << 30, 1 << 30, 7).volume()).isEqualTo(7L << 60);
    assertThat(new Dim3(1 << 30, 1 << 30, 8).volume()).isEqualTo(Long.MAX_VALUE);
  }

  @Test
  @DisplayName("AOT-1: a step has a launch, and no prepare or destroy beside its description")
  void steps() {
    assertThatThrownBy(CudaStep::of).isInstanceOf(IllegalArgumentException.class);
    CudaLaunch launch = launch(ONE, ONE);
    assertThat(CudaStep.of(launch).withWorkspace(64)).isEqualTo(new CudaStep(List.of(launch), 64));
    assertThatThrownBy(() -> CudaStep.of(launch).withWorkspace(-1))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(
            () ->
                Kernel.builder("test.both", "SQR")
                    .prepare(context -> Prepared.NOTHING)
                    .launch(context -> CudaStep.of(launch)))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("test.both");
  }
}
