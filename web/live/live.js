// The live layer of the page. The server has rendered what is there; this brings it up to date, and lets a person act.

import { connect } from './connect.js';
import { History } from './history.js';
import { Keys } from './keys.js';
import { TaskPage } from './task.js';
import { el } from './ui.js';

const whys = {
  starting: 'Connecting …',
  login: 'The log-in has ended. Open the link that roost open or roost serve prints; what you typed is kept.',
  crowded: 'Too many pages follow this server. Close some of them.',
  stopping: 'The server stops.',
};

function connection() {
  const line = el('p', { id: 'connection', role: 'status', hidden: true });
  document.body.prepend(line);
  let since = null;
  return ({ live, why }) => {
    if (live) since = null;
    else if (why !== 'starting') since ??= new Date();
    line.hidden = live;
    document.body.dataset.live = live;
    line.textContent = live ? '' : (whys[why] || 'The server does not answer.') + (since ? ' Not live since ' + since.toLocaleTimeString() + '.' : '');
  };
}

const keys = new Keys();
keys.on(['/'], 'search', () => {
  const search = document.querySelector('input[name=q]');
  if (search) search.focus();
  else location.href = '/?focus=q';
});
document.addEventListener('keydown', (e) => {
  if (e.key === 'Escape' && e.target.matches?.('input[name=q]')) e.target.blur();
});

const main = document.querySelector('main');
const page = document.body.dataset.page === 'task' ? new TaskPage(main, keys)
  : document.body.dataset.page === 'history' ? new History(main, keys) : null;

if (page) {
  connect({
    cursor: main.dataset.cursor || document.body.dataset.cursor || '',
    task: main.dataset.task || '',
    on: { events: (list) => page.events(list), state: connection(), lost: () => (page.lost ? page.lost() : page.refresh()) },
  });
}
