package org.ggmlext.ext;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
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
   */
  public static void main(String[] args) {
    int status = run(args, System.out, System.err);
    if (status != 0) {
      System.exit(status);
    }
  }

  /** The exit status. */
  static int run(String[] args, PrintStream out, PrintStream err) {
    if (args.length < 1 || args.length > 2) {
      err.println("usage: org.ggmlext.ext.PlanPictures RECORDING.jfr [FOLDER]");
      return 2;
    }
    try {
      Path recording = Path.of(args[0]);
      if (!Files.isRegularFile(recording)) {
        err.println(recording + ": there is no such file");
        return 1;
      }
      List<Path> written = write(recording, Path.of(args.length == 2 ? args[1] : "."));
      written.forEach(out::println);
      if (written.isEmpty()) {
        err.println(
            args[0] + " holds no " + PlanPictureEvent.NAME + ": record with that event enabled");
      }
      return written.isEmpty() ? 1 : 0;
    } catch (FileAlreadyExistsException e) {
      err.println(e.getFile() + " is no folder");
    } catch (IOException | InvalidPathException e) {
      err.println(args[0] + ": " + e.getMessage());
    }
    return 1;
  }

  static List<Path> write(Path recording, Path folder) throws IOException {
    // The recorder writes events of different sizes in different orders.
    List<RecordedEvent> pictures =
        RecordingFile.readAllEvents(recording).stream()
            .filter(event -> event.getEventType().getName().equals(PlanPictureEvent.NAME))
            .sorted(Comparator.comparing(RecordedEvent::getStartTime))
            .toList();
    Files.createDirectories(folder);
    List<Path> written = new ArrayList<>();
    for (RecordedEvent picture : pictures) {
      Path file = folder.resolve("plan-" + (written.size() + 1) + ".svg");
      written.add(Files.writeString(file, picture.getString("svg")));
    }
    return written;
  }
}
