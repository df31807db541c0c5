package org.ggmlext.kit;

/** What came of a case. */
public enum Verdict {
  /** The kernel or rule ran, and the result is right. */
  PASSED,
  /** The result is wrong, differs between runs, or the compute failed. */
  FAILED,
  /** The kernel or rule did not take the case, for the reason given; what ran instead is right. */
  REFUSED,
  /** There is no such case for these inputs. */
  NOT_APPLICABLE
}
