// The live layer of the page. The server has rendered what is there; this brings it up to date, and lets a person act.

import { Calls } from './calls.js';
import { connect } from './connect.js';
import { Devices } from './devices.js';
import { scriptAddress } from './fragment.js';
import { History } from './history.js';
import { Keys } from './keys.js';
import { Review } from './review.js';
import { settings } from './settings.js';
import { TaskPage } from './task.js';
import { Trash } from './trash.js';
import { el } from './ui.js';

const whys = {
  starting: 'Connecting …',
  login: 'The log-in has ended. Open the link that roost open or roost serve prints; what you typed is kept.',
  crowded: 'Too many pages follow this server. Close some of them.',
  stopping: 'The server stops.',
};

function connection(again) {
  let line = document.getElementById('live-state');
  if (!line) document.body.prepend(line = el('p', { id: 'live-state', role: 'status' }));
  let since = null;
  return ({ live, why }) => {
    if (live && since) again();
    if (live) since = null;
    else if (why !== 'starting') since ??= new Date();
    document.body.dataset.live = live;
    line.textContent = live ? '' : (whys[why] || 'The server does not answer.') + (since ? ' Not live since ' + since.toLocaleTimeString() + '.' : '');
  };
}

const keys = new Keys();
keys.on(['/'], 'search', () => {
  const search = document.querySelector('input[name=q], input[name=find]');
  if (search) search.focus();
  else location.href = '/';
});
keys.on([','], 'settings', () => { location.href = '/settings'; });
settings();
document.addEventListener('keydown', (e) => {
  if (e.key === 'Escape' && e.target.matches?.('input[type=search]')) e.target.blur();
});

const main = document.querySelector('main');
const pages = { task: TaskPage, history: History, changes: Review, devices: Devices, trash: Trash };
const kind = document.body.dataset.page, task = main.dataset.task || '';

if (!['login', 'problem', 'trust'].includes(kind)) {
  const page = pages[kind] ? new pages[kind](main, keys) : null;
  const calls = new Calls(document.querySelector('header.top'));
  connect({
    cursor: document.body.dataset.cursor || '',
    task,
    on: {
      events: (list) => {
        calls.events(list);
        page?.events?.(list);
      },
      state: connection(() => { page?.again?.(); calls.again(); }),
      lost: () => { page?.lost?.(); calls.again(); },
    },
  });
  // It shows a page of its own when the server is not there, and the notifications of a phone. Where a browser does not
  // want it, nothing else is missing.
  navigator.serviceWorker?.register(scriptAddress('/static/sw.js'), { scope: '/' }).catch(() => {});
}
