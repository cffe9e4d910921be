// The shared worker: one event stream for all pages of a browser.

import { Hub } from './hub.js';

const hub = new Hub();
let pages = 0;

self.addEventListener('online', () => hub.wake());

self.addEventListener('connect', (event) => {
  const port = event.ports[0], id = ++pages;
  const leave = () => { hub.leave(id); port.close(); };
  port.onmessage = ({ data }) => {
    hub.handle(id, data, (m) => port.postMessage(m));
    // A page holds a lock for as long as it lives: who gets it knows that the page is gone, also after a crash.
    if (data.lock) navigator.locks?.request(data.lock, leave);
  };
});
