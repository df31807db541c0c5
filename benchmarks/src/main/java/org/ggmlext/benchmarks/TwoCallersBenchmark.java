package org.ggmlext.benchmarks;

import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Threads;

/** The same by two callers at once, each with a model of its own on one thread. */
@State(Scope.Thread)
@Threads(2)
public class TwoCallersBenchmark extends SentenceBenchmark {
  @Override
  Sentences open() throws Exception {
    return Sentences.of(engine, 1);
  }
}
