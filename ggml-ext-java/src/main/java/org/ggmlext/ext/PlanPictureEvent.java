package org.ggmlext.ext;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Enabled;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

/** A plan as a picture; off as it comes, since it is large. {@link PlanPictures} reads it. */
@Name(PlanPictureEvent.NAME)
@Label("Plan Picture")
@Description("The picture of a plan, an SVG document")
@Category("ggml-ext")
@Enabled(false)
@StackTrace(false)
final class PlanPictureEvent extends Event {
  static final String NAME = "org.ggmlext.PlanPicture";

  @Label("Backend")
  @Nullable String backend;

  @Label("SVG")
  @Nullable String svg;

  void fill(Plan plan) {
    backend = plan.backend();
    svg = plan.toSvg();
  }
}
