// The live layer of the page. The server has rendered what is there; this brings it up to date, and lets a person act.

import { connect } from './connect.js';
import { History } from './history.js';
import { Keys } from './keys.js';
import { Review } from './review.js';
import { TaskPage } from './task.js';
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
document.addEventListener('keydown', (e) => {
  if (e.key === 'Escape' && e.target.matches?.('input[type=search]')) e.target.blur();
});

const main = document.querySelector('main');
const page = document.body.dataset.page === 'task' ? new TaskPage(main, keys)
  : document.body.dataset.page === 'history' ? new History(main, keys)
  : document.body.dataset.page === 'changes' ? new Review(main, keys) : null;

if (page) {
  connect({
    cursor: document.body.dataset.cursor || '',
    task: main.dataset.task || '',
    on: { events: (list) => page.events(list), state: connection(() => page.again()), lost: () => page.lost() },
  });
}
