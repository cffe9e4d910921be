// The field in which a person writes to a task, or for a new one: its words with their draft, what completes them, and the
// images that go along.

import { Complete, offers } from './complete.js';
import { Draft } from './draft.js';
import { button, el, failed } from './ui.js';

const imageMost = 20;
const imageBytes = 5 << 20;

export class Writing {
  // folder gives the folder of a task that does not exist yet. acts are what a line with a "/" may name on this page:
  // {name, about, act}. zone is where images can be dropped.
  constructor(task, { properties, folder = () => '', acts = [], zone, enter }) {
    Object.assign(this, { task, folder, acts });
    this.words = el('textarea', { rows: 1, ...properties });
    this.draft = new Draft(task, () => this.show());
    this.moved = el('section', { class: 'moved', 'aria-label': 'Written elsewhere', hidden: true });
    this.images = el('ul', { class: 'images', 'aria-label': 'Images that go along', hidden: true });
    this.complete = new Complete(this.words, { find: (head, signal) => this.find(head, signal), enter });
    const file = el('input', { type: 'file', accept: 'image/png,image/jpeg,image/gif,image/webp', multiple: true, hidden: true, tabindex: -1, 'aria-label': 'Images' });
    file.addEventListener('change', () => { this.attach([...file.files]); file.value = ''; });
    this.pick = button('Image', () => file.click(), { 'data-does': 'image', title: 'Attach an image. Pasting and dropping one work, too.' });
    this.box = el('div', { class: 'writing' }, this.moved, this.images, this.complete.list, this.complete.said, this.words, file);
    this.words.addEventListener('input', () => { this.draft.set({ text: this.words.value }); this.fit(); });
    this.words.addEventListener('paste', (e) => {
      const files = [...e.clipboardData.files];
      if (!files.length || e.clipboardData.getData('text/plain')) return;
      e.preventDefault();
      this.attach(files);
    });
    const carries = (e) => e.dataTransfer?.types.includes('Files');
    zone.addEventListener('dragover', (e) => { if (carries(e)) { e.preventDefault(); this.box.classList.add('drop'); } });
    for (const gone of ['dragleave', 'drop']) zone.addEventListener(gone, () => this.box.classList.remove('drop'));
    zone.addEventListener('drop', (e) => { if (carries(e)) { e.preventDefault(); this.attach([...e.dataTransfer.files]); } });
    this.show();
    this.draft.load().catch(() => {}); // the copy of the browser is shown
  }

  fit() {
    this.words.rows = Math.min(10, Math.max(+this.words.dataset.rows || 1, this.words.value.split('\n').length));
  }

  // show brings the field up to date with the draft.
  show() {
    if (this.words.value !== this.draft.text) this.words.value = this.draft.text;
    this.fit();
    this.images.hidden = !this.draft.images.length;
    this.images.replaceChildren(...this.draft.images.map((name, n) => el('li', {},
      el('img', { src: this.draft.image(name), alt: 'Image ' + (n + 1) }),
      button('×', () => this.remove(name), { 'aria-label': 'Remove image ' + (n + 1) }))));
    this.showMoved();
    this.onshow?.();
  }

  // showMoved shows what was written elsewhere meanwhile, until the person chooses.
  showMoved() {
    const other = this.draft.other;
    this.moved.hidden = !other;
    if (!other) return this.moved.replaceChildren();
    const choose = (which) => () => { Promise.resolve(this.draft.choose(which)).catch(failed); this.words.focus(); };
    this.moved.replaceChildren(el('p', { role: 'status' }, 'On another device this was written meanwhile:'),
      el('blockquote', { dir: 'auto', tabindex: 0 }, other.text || 'Images alone'),
      el('div', { class: 'acts' }, button('Take both', choose('both'), { 'data-does': 'both' }), button('Take that', choose('there'), { 'data-does': 'there' }),
        button('Keep what is here', choose('here'), { 'data-does': 'here' })));
  }

  remove(name) {
    this.draft.set({ images: this.draft.images.filter((i) => i !== name) }, 0);
    this.show();
    this.words.focus();
  }

  // attach adds images, one request each, and says of what is none why it was refused.
  async attach(files) {
    for (const file of files) {
      try {
        if (this.draft.images.length >= imageMost) throw new Error(`A message takes at most ${imageMost} images.`);
        this.draft.set({ images: [...this.draft.images, await dataURL(file)] }, 0);
        this.show();
        await this.draft.save();
      } catch (problem) {
        if (problem.code === 'validation_failed') this.draft.set({ images: this.draft.images.slice(0, -1) }, 0);
        this.show();
        if (problem.code !== 'unreachable') failed(problem);
      }
    }
  }

  // find gives what the text before the cursor asks to complete: a command at the beginning of a line, or an "@".
  async find(head, signal) {
    let m = /(?:^|\n)\/([\w.-]*)$/.exec(head);
    if (m) {
      const begun = m[1].toLowerCase(), from = head.length - m[1].length - 1;
      const own = from ? [] : this.acts.filter((a) => a.name.includes(begun)).sort((a, b) => b.name.startsWith(begun) - a.name.startsWith(begun));
      const known = await offers(this.task, 'command', m[1], signal, this.folder());
      return { from, items: [...own.map((a) => ({ text: '/' + a.name, about: a.about })),
        ...known.filter((k) => from || !this.acts.some((a) => a.name === k.text)).map((k) => ({ ...k, text: '/' + k.text }))] };
    }
    m = /(?:^|\s)@((?:\\ |[^\s\\])*)$/.exec(head);
    return m && { from: head.length - m[1].length - 1, items: await offers(this.task, 'mention', m[1], signal, this.folder()) };
  }

  // act is the act of the page that the words name, with what stands behind the name; null when they are for the task.
  act() {
    const m = /^\/([\w-]+)(?:\s+([^]*))?$/.exec(this.words.value.trim());
    const found = m && this.acts.find((a) => a.name === m[1]);
    return found ? { ...found, rest: (m[2] || '').trim() } : null;
  }

  // clear takes the words out of the field; images stay, for what is written next.
  clear() {
    this.draft.set({ text: '' }, 0);
    this.show();
  }
}

// kinds are the images that models take, by how they begin.
const kinds = [['image/png', /^\x89PNG\r\n\x1a\n/], ['image/jpeg', /^\xff\xd8\xff/], ['image/gif', /^GIF8[79]a/], ['image/webp', /^RIFF[^]{4}WEBP/]];

// dataURL reads an image. Its kind follows from its bytes; a name says nothing.
async function dataURL(file) {
  const name = '“' + file.name.slice(0, 80) + '”';
  const head = String.fromCharCode(...new Uint8Array(await file.slice(0, 12).arrayBuffer()));
  const kind = kinds.find(([, begins]) => begins.test(head))?.[0];
  if (!kind) throw new Error(`${name} is no image that models take: PNG, JPEG, GIF or WebP.`);
  if (file.size > imageBytes) throw new Error(`${name} has more than ${imageBytes >> 20} MB, and models take no larger image.`);
  return new Promise((done, fail) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.onerror = () => fail(new Error(`${name} cannot be read.`));
    reader.readAsDataURL(new Blob([file], { type: kind }));
  });
}
