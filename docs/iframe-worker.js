// In pages that are opened from a folder, browsers start no worker, and the search is one: here it
// runs in a hidden frame instead.
if (location.protocol === "file:") {
  // as a worker does: a copy of the message, and later
  const send = (data, to) => {
    const event = new MessageEvent("message", { data: structuredClone(data) });
    setTimeout(() => {
      to.dispatchEvent(event);
      if (to instanceof Worker) to.onmessage?.(event); // a window calls its own
    });
  };
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      const inside = frame.contentWindow;
      const base = new URL(url, location.href);
      const load = (source) =>
        new Promise((done, failed) => {
          const script = inside.document.createElement("script");
          Object.assign(script, { src: new URL(source, base), onload: done, onerror: failed });
          inside.document.head.append(script);
        });
      inside.importScripts = (...sources) => Promise.all(sources.map(load));
      inside.postMessage = (data) => send(data, this);
      this.ready = load(base).then(() => inside);
    }
    postMessage(data) {
      this.ready.then((inside) => send(data, inside));
    }
    terminate() {}
  };
}
