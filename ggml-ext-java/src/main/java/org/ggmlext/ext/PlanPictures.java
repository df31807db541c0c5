package org.ggmlext.ext;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;

/**
 * A command that takes the pictures of plans out of a recording of the Flight Recorder, made with
 * {@code -XX:StartFlightRecording:filename=run.jfr,+org.ggmlext.PlanPicture#enabled=true}.
 */
public final class PlanPictures {
  private PlanPictures() {}

  /**
   * Writes {@code plan-1.svg}, {@code plan-2.svg}, ... in the order in which the plans were made.
   *
   * @param args the recording, and the folder to write to; without it, the current one
   * @throws IOException if the recording cannot be read, or a file cannot be written
   */
  public static void main(String[] args) throws IOException {
    if (args.length < 1 || args.length > 2) {
      System.err.println("usage: org.ggmlext.ext.PlanPictures RECORDING.jfr [FOLDER]");
      System.exit(2);
    }
    List<Path> written = write(Path.of(args[0]), Path.of(args.length == 2 ? args[1] : "."));
    written.forEach(System.out::println);
    if (written.isEmpty()) {
      System.err.println(
          args[0] + " holds no " + PlanPictureEvent.NAME + ": record with that event enabled");
      System.exit(1);
    }
  }

  static List<Path> write(Path recording, Path folder) throws IOException {
    Files.createDirectories(folder);
    // The recorder writes events of different sizes in different orders.
    List<RecordedEvent> pictures =
        RecordingFile.readAllEvents(recording).stream()
            .filter(event -> event.getEventType().getName().equals(PlanPictureEvent.NAME))
            .sorted(Comparator.comparing(RecordedEvent::getStartTime))
            .toList();
    List<Path> written = new ArrayList<>();
    for (RecordedEvent picture : pictures) {
      Path file = folder.resolve("plan-" + (written.size() + 1) + ".svg");
      written.add(Files.writeString(file, picture.getString("svg")));
    }
    return written;
  }
}
