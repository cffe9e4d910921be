// The changes of a task, as a person reviews them: a file or a hunk goes back after a preview, and a comment on a line
// becomes part of the next message.

import { change, undo } from './actions.js';
import { act, taskPath } from './api.js';
import { appendToDraft } from './draft.js';
import { store, stored } from './storage.js';
import { button, counted, dialog, diffOf, el, note, tried } from './ui.js';

// What changes files or what is known of them: the page shows an older state then.
const stale = ['checkpoint.saved', 'checkpoint.restored', 'history.rewound', 'history.undone'];
const quoteMost = 200; // characters of a line that a comment quotes

export class Review {
  constructor(main, keys) {
    this.main = main;
    this.task = main.dataset.task;
    this.slot = 'roost-comments-' + this.task;
    this.next = '/tasks/' + encodeURIComponent(this.task) + '#composer';
    this.bar = document.getElementById('review-bar');
    this.news = el('p', { id: 'newer', class: 'notice', role: 'status', hidden: true }, 'Files of the task changed since this page was loaded. ',
      button('Show them', () => this.writes() || location.reload()));
    this.waiting = el('p', { id: 'waiting', class: 'notice', role: 'status', hidden: true });
    this.bar?.append(this.news, this.waiting);
    for (const file of main.querySelectorAll('.file')) this.equip(file);
    if (main.querySelector('.file')) {
      this.bar.append(el('div', { class: 'acts' }, button('Fold all', () => this.fold(false), { 'data-does': 'fold' }),
        button('Unfold all', () => this.fold(true), { 'data-does': 'unfold' })));
    }
    const message = document.getElementById('commit-message');
    message?.before(el('div', { class: 'acts' }, button('Copy', tried(async () => {
      await navigator.clipboard.writeText(message.textContent);
      note('The message is copied.');
    }), { 'data-does': 'copy-message' }), button('Ask the model for one', tried(async () => {
      await appendToDraft(this.task, 'Suggest a message for a commit of what this task changed. Commit nothing.');
      note('The next message asks for it.', { link: ['To the message', this.next] });
    }), { 'data-does': 'ask-message' })));
    main.addEventListener('click', (e) => {
      const line = e.target.closest('.ln')?.closest('.lines > div');
      if (line) this.comment(line);
    });
    main.addEventListener('focusin', (e) => this.roves(e.target.closest('.lines > div')));
    keys.on(['j'], 'the next hunk', () => this.go(1));
    keys.on(['k'], 'the previous hunk', () => this.go(-1));
    keys.on(['ArrowDown'], 'in a hunk: the next line', () => this.line(1));
    keys.on(['ArrowUp'], 'in a hunk: the previous line', () => this.line(-1));
    keys.on(['c'], 'comment on the line', () => this.comment(this.current()));
    keys.on(['x'], 'take back the hunk', () => this.current()?.closest('.hunk')?.querySelector('[data-does=restore-hunk]')?.click());
    keys.on(['o'], 'fold the file, or unfold it', () => {
      const details = (document.activeElement.closest('.file') || main.querySelector('.file'))?.querySelector('details');
      if (details) details.open = !details.open;
    });
    this.marks();
    addEventListener('storage', (e) => { if (e.key === this.slot) this.marks(); });
  }

  // equip adds the buttons of a file and its hunks.
  equip(file) {
    if (file.dataset.hash) {
      file.querySelector('.filehead').append(button('Restore file', tried(() => this.restore(file, null)), { 'data-does': 'restore-file' }));
    }
    for (const hunk of file.querySelectorAll('.hunk')) {
      const head = hunk.querySelector('header'), first = hunk.querySelector('.lines > [data-new], .lines > [data-old]');
      if (first) first.tabIndex = 0;
      head.append(el('span', { class: 'acts' },
        button('Comment', () => this.comment(hunk.querySelector('.lines > .added, .lines > .removed') || first), { 'data-does': 'comment' }),
        hunk.dataset.hunk && button('Restore hunk', tried(() => this.restore(file, hunk)), { 'data-does': 'restore-hunk' })));
    }
  }

  fold(open) {
    for (const d of this.main.querySelectorAll('.file > details')) d.open = open;
  }

  // roves keeps one line of each hunk in the order of the Tab key: the one that had the focus last.
  roves(line) {
    if (!line) return;
    for (const other of line.parentElement.querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
    line.tabIndex = 0;
  }

  current() { return document.activeElement.closest('.lines > div'); }

  go(by) {
    const hunks = [...this.main.querySelectorAll('.hunk')].filter((h) => h.checkVisibility());
    const at = hunks.indexOf(document.activeElement.closest('.hunk'));
    const next = hunks[at < 0 ? (by > 0 ? 0 : hunks.length - 1) : Math.min(Math.max(at + by, 0), hunks.length - 1)];
    next?.querySelector('.lines > [tabindex="0"]')?.focus();
  }

  line(by) {
    let next = this.current();
    if (!next) return false; // the page scrolls
    do next = by > 0 ? next.nextElementSibling : next.previousElementSibling;
    while (next && !next.dataset.new && !next.dataset.old);
    if (next) {
      next.tabIndex = -1;
      next.focus();
    }
  }

  // restore takes back what a file or a hunk shows, once the person has seen what will be written.
  async restore(file, hunk) {
    const part = file.closest('.part'), name = file.getAttribute('aria-label');
    const path = taskPath(this.task, '/checkpoints/' + encodeURIComponent(part.dataset.from) + '/restore');
    const body = { paths: [decodeURIComponent(file.dataset.path)], shown: { to: part.dataset.to, hash: (hunk || file).dataset.hash,
      hunk: hunk ? Number(hunk.dataset.hunk) : undefined } };
    const what = hunk ? `Take back hunk ${hunk.dataset.hunk} of ${name}` : `Take back the changes of ${name}`;
    for (let rule = ''; ;) {
      const given = rule ? { ...body, on_conflict: rule } : body;
      let plan;
      try {
        plan = await act('POST', path, { ...given, dry_run: true });
      } catch (problem) {
        if (problem.code === 'difference_changed') this.newer();
        throw problem;
      }
      const answer = await dialog(what + '?', preview(plan, hunk), choices(plan, rule, hunk));
      if (!answer) return;
      if (answer.value !== 'yes') {
        rule = answer.value;
        continue;
      }
      const { done, back } = await change(this.task, 'POST', path, { ...given, plan: plan.plan });
      this.newer();
      note(done.outcome === 'done' ? `${name} is written.` : 'Nothing was written.', back && { does: 'Undo', act: tried(() => undo(this.task, back)) });
      return;
    }
  }

  newer() { this.news.hidden = false; }

  events(list) { if (list.some((e) => stale.includes(e.type) && e.data.task_id === this.task.split(':').at(-1))) this.newer(); }
  lost() { this.newer(); }

  // writes goes to a comment that is being written, so that it is not lost, and reports whether there is one.
  writes() {
    const words = this.main.querySelector('form.comment textarea');
    words?.focus();
    return Boolean(words?.value.trim());
  }

  // comment opens a field under a line.
  comment(line) {
    if (!line) return false;
    const side = line.dataset.new ? 'new' : 'old', number = line.dataset.new || line.dataset.old;
    if (!number) return false;
    if (this.writes()) return;
    this.main.querySelector('form.comment')?.remove();
    const name = line.closest('.file').getAttribute('aria-label');
    const words = el('textarea', { rows: 3, required: true, 'aria-label': `Comment on line ${number} of ${name}` });
    const close = () => { form.remove(); line.tabIndex = 0; line.focus(); };
    const form = el('form', { class: 'comment', onsubmit: (e) => {
      e.preventDefault();
      const text = words.value.trim();
      if (text) tried(() => this.keep(line, { hash: line.closest('.file').dataset.hash, path: line.closest('.file').dataset.path, side, number }, name, text).then(close))();
    } }, words, el('div', { class: 'acts' }, el('button', { class: 'primary' }, 'Add to the next message'), button('Cancel', close)));
    words.addEventListener('keydown', (e) => {
      if (e.key === 'Escape') close();
      else if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) form.requestSubmit();
    });
    line.after(form);
    words.focus();
    form.scrollIntoView({ block: 'nearest' });
  }

  // keep puts a comment into the draft of the next message, and marks its line.
  async keep(line, at, name, text) {
    const shown = line.querySelector('code').textContent.slice(1);
    const quoted = shown.length > quoteMost ? shown.slice(0, quoteMost) + '…' : shown;
    await appendToDraft(this.task, `${name}:${at.number}${at.side === 'old' ? ' (a removed line)' : ''}\n> ${quoted}\n${text}`);
    store(this.slot, { prompts: this.main.dataset.prompts, items: [...this.comments(), at] });
    this.marks();
  }

  // comments are those that wait. A message that went out since took them along.
  comments() {
    const kept = stored(this.slot, { items: [] });
    return kept.prompts === this.main.dataset.prompts ? kept.items : [];
  }

  marks() {
    const list = this.comments();
    for (const old of this.main.querySelectorAll('.commented')) old.classList.remove('commented');
    for (const { path, hash, side, number } of list) { // lines of another difference have other numbers
      for (const file of this.main.querySelectorAll(`.file[data-path="${CSS.escape(path)}"][data-hash="${CSS.escape(hash)}"]`)) {
        file.querySelector(`.lines > [data-${side === 'new' ? 'new' : 'old'}="${CSS.escape(number)}"]`)?.classList.add('commented');
      }
    }
    this.waiting.hidden = !list.length;
    this.waiting.replaceChildren(el('span', {}, `${counted(list.length, 'comment')} ${list.length === 1 ? 'waits' : 'wait'} in `,
      el('a', { href: this.next }, 'the next message'), '.'));
  }
}

// shownOf is a patch without the lines that name the file, and without what no one reads in a dialog.
const shownOf = (patch) => patch.slice(patch.indexOf('\n@@ ') + 1).slice(0, 64 << 10);

// preview shows what a restore would write, and what it would leave.
function preview({ files, conflicts, lost }, hunk) {
  const list = (words, items) => items.length > 0 && [el('p', {}, words), el('ul', {}, items.map((f) => el('li', {}, f.why || f.change)))];
  return [
    files.map((f) => [el('p', {}, { added: 'The file will be there again:', deleted: 'The file will be removed:' }[f.change] || 'This will be written:'),
      f.patch ? diffOf(shownOf(f.patch)) : el('p', {}, f.why || f.change)]),
    list('In conflict, and left as it is:', conflicts),
    list('Its content was not kept:', lost),
    !files.length && !conflicts.length && !lost.length && el('p', {}, hunk ? 'These lines are as they were already.' : 'The file is as it was already.'),
    files.length > 0 && el('p', { class: 'kind' }, 'A checkpoint keeps what is replaced: undo brings it back.'),
  ].flat(Infinity).filter(Boolean);
}

// choices are the buttons of a preview: what is in conflict can go back by lines or as a whole.
function choices({ files, conflicts }, rule, hunk) {
  const also = [];
  if (conflicts.length && rule !== 'merge') also.push(['merge', 'Take only these changes out …']);
  if (conflicts.length && !hunk && rule !== 'overwrite') also.push(['overwrite', 'Replace the file …']);
  return files.length ? { does: 'Write it', danger: true, also } : { does: '', also };
}
