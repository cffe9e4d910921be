// Keys, and the list of them. A key without a modifier counts only outside of what is typed into.

import { el, typing } from './ui.js';

const names = { ' ': 'Space', ArrowUp: '↑', ArrowDown: '↓' };

export class Keys {
  constructor() {
    this.list = [];
    document.addEventListener('keydown', (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing || typing(e.target) || document.querySelector('dialog[open]')) return;
      if (e.target.closest?.('button, summary, a') && (e.key === 'Enter' || e.key === ' ')) return;
      const found = this.list.find((k) => k.keys.includes(e.key));
      if (found && found.act(e) !== false) e.preventDefault();
    });
    this.on(['?'], 'this list', () => this.help());
  }

  on(keys, text, act) {
    this.list.push({ keys, text, act });
  }

  help() {
    const close = el('button', { class: 'primary', autofocus: true }, 'Close');
    const box = el('dialog', { id: 'keys', 'aria-label': 'Keys' }, el('form', { method: 'dialog' }, el('div', { class: 'acts head' }, el('h2', {}, 'Keys'), close),
      el('dl', {}, this.list.filter((k) => k.text).map((k) => [el('dt', {}, k.keys.length > 2 ? [el('kbd', {}, k.keys[0]), ' – ', el('kbd', {}, k.keys.at(-1))] : k.keys.map((one) => el('kbd', {}, names[one] || one))), el('dd', {}, k.text)])),
      el('p', {}, 'In the message field: Enter sends, Shift+Enter makes a new line, Escape leaves it.')));
    box.addEventListener('close', () => box.remove());
    document.body.append(box);
    box.showModal();
  }
}
