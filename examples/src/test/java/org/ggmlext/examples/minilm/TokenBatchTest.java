package org.ggmlext.examples.minilm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class TokenBatchTest {

  @Test
  @DisplayName("Ragged sequences are padded to the longest")
  void padsToTheLongest() {
    TokenBatch batch = TokenBatch.of(List.of(new int[] {7}, new int[] {1, 2, 3}, new int[] {4, 5}));

    assertThat(batch.length()).isEqualTo(3);
    assertThat(batch.sequences()).isEqualTo(3);
    assertThat(batch.tokens()).isEqualTo(6);
    assertThat(batch.lengths()).containsExactly(1, 3, 2);
    assertThat(batch.ids()).containsExactly(7, 0, 0, 1, 2, 3, 4, 5, 0);
  }

  @Test
  @DisplayName("No sequence, an empty one, one that is too long and an unknown token are refused")
  void refusesBadSequences() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> TokenBatch.of(List.of()))
        .withMessageContaining("0 sequences");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> TokenBatch.of(List.of(new int[] {1}, new int[0])))
        .withMessage("sequence 1 has 0 tokens, expected 1 to 512");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> TokenBatch.of(List.of(new int[513])))
        .withMessage("sequence 0 has 513 tokens, expected 1 to 512");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> TokenBatch.of(List.of(new int[] {5, 30522})))
        .withMessage("sequence 0 holds the token 30522, expected 0 to 30521");
  }
}
