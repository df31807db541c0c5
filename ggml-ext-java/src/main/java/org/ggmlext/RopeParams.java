package org.ggmlext;

/**
 * Parameters of a rotary position encoding, with YaRN's for contexts that are longer than those of
 * the training.
 *
 * @param dims elements of each row that are rotated, even; the rest is copied
 * @param mode which elements are rotated together
 * @param contextOfTraining length of the contexts in training, for YaRN; 0 without it
 * @param base the base of the frequencies, such as 10000
 * @param frequencyScale factor of the positions
 * @param extFactor share of YaRN's extrapolation; 0: none
 * @param attentionFactor factor of the result
 * @param betaFast YaRN's upper bound, such as 32
 * @param betaSlow YaRN's lower bound, such as 1
 */
public record RopeParams(
    int dims,
    RopeMode mode,
    int contextOfTraining,
    float base,
    float frequencyScale,
    float extFactor,
    float attentionFactor,
    float betaFast,
    float betaSlow) {
  /** Without YaRN. */
  public static RopeParams of(int dims, RopeMode mode, float base) {
    return new RopeParams(dims, mode, 0, base, 1, 0, 1, 32, 1);
  }
}
