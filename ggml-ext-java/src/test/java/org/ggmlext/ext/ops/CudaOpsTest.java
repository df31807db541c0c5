package org.ggmlext.ext.ops;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.offset;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.Optional;
import org.ggmlext.Backend;
import org.ggmlext.Context;
import org.ggmlext.Device;
import org.ggmlext.DeviceType;
import org.ggmlext.Ggml;
import org.ggmlext.GgmlException;
import org.ggmlext.Graph;
import org.ggmlext.Scheduler;
import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.ggmlext.ext.Extensions;
import org.ggmlext.ext.KernelLibrary;
import org.ggmlext.ext.LibraryRegistration;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The bundled CUDA kernels. Natives built where there was no nvcc do not hold them. */
class CudaOpsTest {
  private static KernelLibrary library() {
    try {
      return KernelLibrary.bundled("cuda");
    } catch (GgmlException e) {
      assumeTrue(false, "the natives hold no CUDA kernels: " + e.getMessage());
      throw e;
    }
  }

  private static Device gpu() {
    Optional<Device> gpu =
        Ggml.load().devices().stream()
            .filter(d -> d.type() == DeviceType.GPU && d.name().startsWith("CUDA"))
            .findFirst();
    assumeTrue(
        gpu.isPresent(), "ggml has no CUDA device here: no GPU, no driver, or no CUDA backend");
    return gpu.get();
  }

  @Test
  @DisplayName("JAVA-5: the CUDA kernels load on a host without a GPU, and refuse the CPU by name")
  void notOnTheCpu() {
    Extensions ext = Extensions.attach(Ggml.load());
    Device cpu = Ggml.load().device(DeviceType.CPU);
    KernelLibrary cuda = library();

    assertThatThrownBy(() -> ext.register(cpu, cuda))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("registers nothing on CPU")
        .hasMessageContaining("attached CUDA device");
  }

  @Test
  @Tag("cuda")
  @DisplayName("CAP-1: a Java program's graph on the GPU is recorded once and replayed")
  void replayed() {
    Extensions ext = Extensions.attach(Ggml.load());
    Device device = gpu();
    Device cpu = Ggml.load().device(DeviceType.CPU);
    int heads = 3;
    int length = 5;
    int pairs = 8;
    try (LibraryRegistration registration = ext.register(device, library());
        Backend backend = device.newBackend();
        Backend rest = cpu.newBackend();
        Scheduler scheduler = Scheduler.of(backend, rest);
        Context inputs = Context.create(1 << 20);
        Context nodes = Context.create(1 << 22)) {
      Tensor x = inputs.newTensor(Type.F32, 2L * pairs, heads, length);
      Tensor pe = inputs.newTensor(Type.F32, 2, 2, pairs, length);
      inputs.allocate(device);
      float[] matrices = new float[4 * pairs * length];
      for (int i = 0; i < pairs * length; i++) {
        matrices[4 * i] = matrices[4 * i + 3] = (float) Math.cos(i);
        matrices[4 * i + 1] = (float) -Math.sin(i);
        matrices[4 * i + 2] = (float) Math.sin(i);
      }
      pe.setFloats(matrices);
      Tensor doubled = nodes.scale(x, 2);
      Tensor y = RopeApply.create(nodes, doubled, pe, RopeApply.Pairs.INTERLEAVED, 0);
      Graph graph = nodes.newGraph(32).expand(y.asOutput());
      float[] in = new float[2 * pairs * heads * length];
      for (int round = 0; round < 6; round++) {
        for (int i = 0; i < in.length; i++) {
          in[i] = (float) Math.sin(i + 10.0 * round);
        }
        x.setFloats(in);
        scheduler.compute(graph);
        float[] out = y.getFloats();
        for (int i = 0; i < in.length; i += 2) {
          int turn = i / 2 % pairs + pairs * (i / (2 * pairs * heads));
          double a = 2.0 * in[i];
          double b = 2.0 * in[i + 1];
          assertThat((double) out[i])
              .isCloseTo(a * Math.cos(turn) - b * Math.sin(turn), offset(1e-5));
          assertThat((double) out[i + 1])
              .isCloseTo(a * Math.sin(turn) + b * Math.cos(turn), offset(1e-5));
        }
      }
      assertThat(registration.registrations()).isNotEmpty();
      if (System.getenv("GGML_CUDA_DISABLE_GRAPHS") == null) {
        assertThat(ext.stats(backend).recorded()).isEqualTo(1);
        assertThat(ext.stats(backend).replayed()).isGreaterThanOrEqualTo(1);
      }
    }
  }
}
