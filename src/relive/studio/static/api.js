// Requests to the server, always with the token from the address that was opened.
const KEY = "relive-token";
let token = sessionStorage.getItem(KEY) || "";
export function giveToken(text) {
  const given = /#token=([\w-]+)$/.exec(text.trim());
  if (given) {
    token = given[1];
    sessionStorage.setItem(KEY, token);
  }
  return Boolean(given);
}
export function takeToken() {
  if (giveToken(location.hash)) {
    history.replaceState(null, "", `${location.pathname}#/live`); // hidden from anyone looking over a shoulder
  }
  return Boolean(token);
}

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}
const headers = (more) => ({ Authorization: `Bearer ${token}`, ...more });

async function answer(response) {
  const text = await response.text();
  let said;
  try {
    said = JSON.parse(text);
  } catch {
    said = { error: text };
  }
  if (!response.ok) throw new Refused(response.status, said.error || `the server answered with status ${response.status}`);
  return said;
}
export const get = async (path, signal) => answer(await fetch(path, { headers: headers(), signal }));
export const post = async (path, body = {}) =>
  answer(await fetch(path, { method: "POST", headers: headers({ "Content-Type": "application/json" }), body: JSON.stringify(body) }));
export const send = async (path, blob) =>
  answer(await fetch(path, { method: "POST", headers: headers({ "Content-Type": "application/octet-stream" }), body: blob }));
export const part = encodeURIComponent;

// Server-sent events by fetch, since an EventSource cannot send the token; calls back with each message until the connection breaks.
export async function listen(onMessage) {
  const response = await fetch("/api/events", { headers: headers(), cache: "no-store" });
  if (!response.ok) await answer(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const messages = (rest + value).split("\n\n");
    rest = messages.pop();
    for (const message of messages) if (message.startsWith("data: ")) onMessage(JSON.parse(message.slice(6)));
  }
}
