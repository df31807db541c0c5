package org.ggmlext.kit;

import java.util.Arrays;
import org.ggmlext.Shape;
import org.ggmlext.Tensor;
import org.jspecify.annotations.Nullable;

/** Collects the comparisons of one case. */
final class Judge {
  private final Tolerance tolerance;
  private final boolean sameBits;
  private @Nullable String failure;
  private Difference largest = new Difference(0, 0, 0, 0, 0);

  Judge(Tolerance tolerance, boolean sameBits) {
    this.tolerance = tolerance;
    this.sameBits = sameBits;
  }

  /** Compares an output with what it should be. */
  synchronized void compare(String what, Tensor tensor, double[] got, double[] want) {
    if (got.length != want.length) {
      fail("%s has %d elements, expected %d".formatted(what, got.length, want.length));
      return;
    }
    Difference difference = Difference.of(got, want);
    if (difference.maxAbsolute() > largest.maxAbsolute()) {
      largest = difference;
    }
    int wrong = 0;
    int first = -1;
    for (int i = 0; i < got.length; i++) {
      if (!tolerance.accepts(got[i], want[i])) {
        wrong++;
        first = first < 0 ? i : first;
      }
    }
    if (wrong > 0) {
      fail(
          "%s: %d of %d elements wrong, the first at %s: %s, expected %s; %s at %s"
              .formatted(
                  what,
                  wrong,
                  got.length,
                  indices(first, tensor.shape()),
                  (float) got[first],
                  (float) want[first],
                  difference,
                  indices(difference.worst(), tensor.shape())));
    }
  }

  /** Compares two runs, where they are to give the same bits. */
  synchronized void sameBits(String what, Tensor tensor, byte[] first, byte[] second) {
    int at = Arrays.mismatch(first, second);
    if (sameBits && at >= 0) {
      int element = at / tensor.type().byteSize();
      fail("%s: other bits at %s".formatted(what, indices(element, tensor.shape())));
    }
  }

  private static String indices(int element, Shape shape) {
    long rest = element;
    long[] at = new long[Shape.DIMS];
    for (int i = 0; i < Shape.DIMS; i++) {
      at[i] = rest % shape.ne(i);
      rest /= shape.ne(i);
    }
    return Arrays.toString(at);
  }

  /** The first failure counts. */
  synchronized void fail(String message) {
    if (failure == null) {
      failure = message;
    }
  }

  /** Null: none. */
  synchronized @Nullable String failure() {
    return failure;
  }

  synchronized Difference largest() {
    return largest;
  }
}
