// What a program of the JDK's own HTTP client does, run as `java Gateway.java`.
//
// It prints one line for each answer: the HTTP version that was asked for, what was asked, the status
// or a session's close code, and the content or its length. Standard input has the addresses and keys, a line each.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.net.http.WebSocket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

public class Gateway {
  static String inference, inferenceKey, speech, speechKey;

  public static void main(String[] arguments) throws Exception {
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    inference = input.readLine();
    inferenceKey = input.readLine();
    speech = input.readLine();
    speechKey = input.readLine();
    // As a program gets it that sets nothing, and without the request to change to HTTP/2.
    everything("default", HttpClient.newHttpClient());
    everything("HTTP/1.1", HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build());
    // Clients of the JDK have threads of their own, which would keep the program.
    System.exit(0);
  }

  static void everything(String name, HttpClient client) throws Exception {
    HttpRequest models = request(inference + "/models", inferenceKey).GET().build();
    HttpResponse<String> listed = client.send(models, BodyHandlers.ofString());
    tell(name, "models", listed.statusCode(), listed.body().contains("acme/demo-8b") ? "listed" : listed.body());
    for (String word : new String[] {"first", "second"}) {
      HttpResponse<String> whole = client.send(chat(word, false), BodyHandlers.ofString());
      tell(name, "chat", whole.statusCode(), content(whole.body()));
    }
    HttpResponse<java.util.stream.Stream<String>> lines =
        client.send(chat("streamed", true), BodyHandlers.ofLines());
    String told = lines.body().filter(line -> line.startsWith("data: {")).map(Gateway::content)
        .collect(Collectors.joining());
    tell(name, "stream", lines.statusCode(), told);
    HttpRequest speak = request(speech + "/audio/speech", speechKey)
        .POST(BodyPublishers.ofString("{\"voice\": \"ava\", \"input\": \"Good morning.\"}")).build();
    HttpResponse<byte[]> spoken = client.send(speak, BodyHandlers.ofByteArray());
    tell(name, "speech", spoken.statusCode(), "" + spoken.body().length);
    session(name, client);
  }

  static HttpRequest.Builder request(String address, String key) {
    return HttpRequest.newBuilder(URI.create(address)).timeout(Duration.ofSeconds(20))
        .header("Authorization", "Bearer " + key).header("Content-Type", "application/json");
  }

  static HttpRequest chat(String word, boolean streamed) {
    String body = "{\"model\": \"acme/demo-8b\", \"stream\": " + streamed
        + ", \"messages\": [{\"role\": \"user\", \"content\": \"say: " + word + "\"}]}";
    return request(inference + "/chat/completions", inferenceKey)
        .POST(BodyPublishers.ofString(body)).build();
  }

  /** The text of the first "content" in an answer or a chunk; the JDK has no parser of JSON. */
  static String content(String json) {
    int at = json.indexOf("\"content\":\"");
    return at < 0 ? "" : json.substring(at + 11, json.indexOf('"', at + 11));
  }

  /** Speak one sentence over a WebSocket, until the server closes; tells the code and the bytes of sound. */
  static void session(String name, HttpClient client) throws Exception {
    CompletableFuture<Integer> closed = new CompletableFuture<>();
    int[] bytes = {0};
    WebSocket.Listener listener = new WebSocket.Listener() {
      @Override public CompletionStage<?> onBinary(WebSocket socket, ByteBuffer data, boolean last) {
        bytes[0] += data.remaining();
        socket.request(1);
        return null;
      }

      @Override public CompletionStage<?> onClose(WebSocket socket, int code, String reason) {
        closed.complete(code);
        return null;
      }

      @Override public void onError(WebSocket socket, Throwable error) {
        closed.completeExceptionally(error);
      }
    };
    WebSocket socket = client.newWebSocketBuilder().header("Authorization", "Bearer " + speechKey)
        .buildAsync(URI.create(speech.replaceFirst("http", "ws") + "/audio/speech/stream"), listener)
        .get(20, TimeUnit.SECONDS);
    socket.sendText("{\"type\": \"start\", \"voice\": \"ava\"}", true).get(20, TimeUnit.SECONDS);
    socket.sendText("{\"type\": \"text\", \"text\": \"Good morning.\"}", true).get(20, TimeUnit.SECONDS);
    socket.sendText("{\"type\": \"done\"}", true).get(20, TimeUnit.SECONDS);
    tell(name, "session", closed.get(20, TimeUnit.SECONDS), "" + bytes[0]);
  }

  static void tell(String client, String asked, int status, String content) {
    System.out.println(client + "\t" + asked + "\t" + status + "\t" + content.replace('\n', ' '));
  }
}
