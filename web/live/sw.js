// The service worker. It keeps one page, which says that the server is not there, with its sheet: nothing of any task is
// kept. It shows notifications where a page may not, and leads from them to the task. All else goes past it.

const kept = ['/static/offline.html', '/static/page.css'];

self.addEventListener('install', (event) => {
  self.skipWaiting();
  event.waitUntil(caches.open('roost-offline').then((cache) => cache.addAll(kept)));
});

self.addEventListener('fetch', (event) => {
  const { request } = event;
  const instead = request.mode === 'navigate' ? kept[0] : kept.find((path) => new URL(request.url).pathname === path);
  if (!instead || request.method !== 'GET') return;
  event.respondWith(fetch(request).catch(async (e) => {
    const page = await caches.match(instead);
    if (page) return page;
    throw e;
  }));
});

self.addEventListener('notificationclick', (event) => {
  event.notification.close();
  event.waitUntil((async () => {
    const path = event.notification.data, task = taskOf(path);
    // A page that was open before the worker came is not controlled by it.
    const open = await self.clients.matchAll({ type: 'window', includeUncontrolled: true });
    const there = open.find((c) => taskOf(new URL(c.url).pathname) === task);
    return there ? there.focus() : self.clients.openWindow(path);
  })());
});

// taskOf is the id of the task whose page has a path; a page may name the source before it.
const taskOf = (path) => /^\/tasks\/([^/#]+)(?:#|$)/.exec(path)?.[1].split(/:|%3A/i).at(-1);
