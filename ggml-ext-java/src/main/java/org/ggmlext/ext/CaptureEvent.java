package org.ggmlext.ext;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

/** A compute after which a backend has more plans as CUDA graphs than before. */
@Name("org.ggmlext.Capture")
@Label("Capture")
@Description(
    "A backend recorded a plan as a CUDA graph, or took over the recording of an equal plan")
@Category("ggml-ext")
@StackTrace(false)
final class CaptureEvent extends Event {
  @Label("Backend")
  @Nullable String backend;

  @Label("Recorded")
  @Description("Plans recorded as CUDA graphs by now")
  long recorded;

  @Label("Reused")
  @Description("Plans that took over the recording of an equal one by now")
  long reused;

  @Label("Replayed")
  @Description("Computes that launched a recording by now")
  long replayed;
}
