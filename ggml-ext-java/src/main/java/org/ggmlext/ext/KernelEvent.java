package org.ggmlext.ext;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.Period;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;
import org.jspecify.annotations.Nullable;

/** Counters of a registered kernel or rule, now and then, and at its end. */
@Name("org.ggmlext.Kernel")
@Label("Kernel Counters")
@Description("What a registered kernel or rule has done since its registration")
@Category("ggml-ext")
@Period("1 s")
@StackTrace(false)
final class KernelEvent extends Event {
  @Label("Kernel")
  @Nullable String kernel;

  @Label("Steps Planned")
  long planned;

  @Label("Steps Executed")
  long executed;

  @Label("Failed Callbacks")
  long failed;

  @Label("Refused Matches")
  long refused;

  @Label("Steps Timed")
  @Description("Executed while profiling was on")
  long timed;

  @Label("Time")
  @Description("Of all timed steps")
  @Timespan(Timespan.NANOSECONDS)
  long time;

  void fill(String kernel, KernelStats stats) {
    this.kernel = kernel;
    planned = stats.planned();
    executed = stats.executed();
    failed = stats.failed();
    refused = stats.refused();
    timed = stats.timed();
    time = stats.nanos();
  }
}
