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
    const path = event.notification.data, [task] = path.split('#');
    const open = await self.clients.matchAll({ type: 'window' });
    const there = open.find((c) => new URL(c.url).pathname === task);
    return there ? there.focus() : self.clients.openWindow(path);
  })());
});
