// Requests to the server that the page came from.

// Failure is what went wrong, in words for people, with the status and the seconds after which to try again.
export class Failure extends Error {
  constructor(message, status = 0, retryAfter = 0) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

let key = sessionStorage.getItem("key") ?? "";

export function setKey(value) {
  key = value;
  sessionStorage.setItem("key", value);
}

// call sends a request and returns the response, or throws a Failure; an abort stays an AbortError.
export async function call(path, options = {}) {
  const headers = { ...options.headers };
  if (key !== "") headers.Authorization = "Bearer " + key;
  let response;
  try {
    response = await fetch(path, { ...options, headers, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure("The server can not be reached.");
  }
  if (response.ok) return response;
  const text = await response.text().catch(() => "");
  throw new Failure(said(text) || `Status ${response.status}.`, response.status,
    Number(response.headers.get("Retry-After")) || 0);
}

// said is the message of an error document, or the text itself.
export function said(text) {
  try {
    return JSON.parse(text).error.message;
  } catch {
    return text.slice(0, 300);
  }
}

// events yields the data of each event of a stream. Bytes may be split anywhere, within a character too.
export async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", data = [];
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const held = value.endsWith("\r") ? "\r" : ""; // its line feed may be in the next piece
    const lines = (rest + value.slice(0, value.length - held.length)).split(/\r\n|\n|\r/);
    rest = lines.pop() + held;
    for (const line of lines) {
      if (line === "") {
        if (data.length > 0) yield data.join("\n");
        data = [];
      } else if (line.startsWith("data:")) {
        data.push(line.slice(line[5] === " " ? 6 : 5));
      }
    }
  }
}
