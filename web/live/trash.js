// The trash: what was deleted is put back, or removed for good.

import { act, getHTML } from './api.js';
import { pageOf } from './fragment.js';
import { button, counted, dialog, el, keepFocus, note, tried } from './ui.js';

export class Trash {
  constructor(main) {
    this.main = main;
    this.adorn();
  }

  adorn() {
    const rows = [...this.main.querySelectorAll('tr[data-name]')];
    for (const row of rows) {
      const title = row.querySelector('.titletext').textContent, path = '/v1/trash/' + encodeURIComponent(row.dataset.name);
      row.querySelector('th').append(el('div', { class: 'acts' },
        button('Put back', tried(async () => {
          const { id, source } = await act('POST', path + '/restore');
          await this.refresh();
          note(`“${title}” is back.`, { does: 'Open it', act: () => { location.href = '/tasks/' + encodeURIComponent(source === 'roost' ? id : source + ':' + id); } });
        }), { 'data-does': 'restore', 'aria-label': 'Put back ' + title }),
        button('Remove for good', tried(async () => {
          const d = await dialog('Remove it for good?', el('p', { dir: 'auto' }, `“${title}” and all its messages are removed from the disk. This cannot be undone.`), { does: 'Remove it for good', danger: true });
          if (!d) return;
          await act('DELETE', path);
          await this.refresh();
          note(`“${title}” was removed for good.`);
        }), { 'data-does': 'purge', class: 'danger', 'aria-label': 'Remove for good ' + title })));
    }
    if (rows.length > 1) {
      this.main.querySelector('.sum').after(el('div', { class: 'acts' }, button('Empty the trash', tried(async () => {
        const d = await dialog('Empty the trash?', el('p', {}, `${counted(rows.length, 'task')} are removed from the disk, with all their messages. This cannot be undone.`), { does: `Remove ${counted(rows.length, 'task')} for good`, danger: true });
        if (!d) return;
        await act('POST', '/v1/purges', { names: rows.map((r) => r.dataset.name) });
        await this.refresh();
        note(counted(rows.length, 'task') + ' were removed for good.');
      }), { 'data-does': 'empty', class: 'danger' })));
    }
  }

  async refresh() {
    const fresh = pageOf(await getHTML(location.pathname)).querySelector('main');
    keepFocus(this.main, () => {
      this.main.replaceChildren(...[...fresh.childNodes].map((n) => document.importNode(n, true)));
      this.adorn();
    }, () => this.main);
  }
}
