package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// acts notes when the scripts of a page have put up what a person can press.
const acts = `self.noted = {}; new MutationObserver((_, o) => {
	if (document.querySelector('#start, #task-acts')) { noted.acts = performance.now(); o.disconnect(); }
}).observe(document, {childList: true, subtree: true});`

const painted = `performance.getEntriesByName('first-contentful-paint')[0]?.startTime`

// opened opens a page again and again: until it shows something, and until it can be used.
func (w *world) opened(t *tab, path string) (shown, usable figures, err error) {
	for range w.rounds + 1 {
		if err := t.fresh(path); err != nil {
			return nil, nil, err
		}
		if err := t.sees("noted.acts && " + painted); err != nil {
			return nil, nil, err
		}
		got, err := value[[]float64](t, "["+painted+", Math.max(noted.acts, "+painted+")]")
		if err != nil {
			return nil, nil, err
		}
		if err := t.live(); err != nil {
			return nil, nil, err
		}
		shown, usable = append(shown, got[0]), append(usable, got[1])
	}
	return shown[1:], usable[1:], nil // the first one also reads the program of the browser
}

// histories is how soon the list of all tasks can be used, and how soon other pages of all tasks are there.
func histories(ctx context.Context, w *world) ([]row, error) {
	t, err := w.loggedIn(w.browser)
	if err != nil {
		return nil, err
	}
	defer t.shut()
	begun := time.Now()
	if err := w.ask(ctx, "GET", "/v1/search?q=leans", nil, nil); err != nil {
		return nil, err
	}
	search := figures{float64(time.Since(begun).Milliseconds())}
	if err := t.before(acts); err != nil {
		return nil, err
	}
	_, usable, err := w.opened(t, "/")
	if err != nil {
		return nil, err
	}
	_, found, err := w.opened(t, "/?q=leans")
	if err != nil {
		return nil, err
	}
	var spent figures
	for range w.rounds {
		if err := errors.Join(t.fresh("/usage"), t.sees(painted)); err != nil {
			return nil, err
		}
		at, err := value[float64](t, painted)
		if err != nil {
			return nil, err
		}
		spent = append(spent, at)
	}
	many := len(w.small)
	if !w.quick {
		many = 10_000
	}
	return []row{
		usable.row(fmt.Sprintf("History of %d tasks can be used", many), "ms", "< 300 ms"),
		found.row("a search in them can be used", "ms", ""),
		search.row("the first search after a start (over HTTP)", "ms", ""),
		spent.row("Usage of them, first contentful paint", "ms", ""),
	}, nil
}

// tasks is how soon the end of a long task is there, and older messages of it.
func tasks(_ context.Context, w *world) ([]row, error) {
	t, err := w.loggedIn(w.browser)
	if err != nil {
		return nil, err
	}
	defer t.shut()
	if err := t.before(acts); err != nil {
		return nil, err
	}
	shown, usable, err := w.opened(t, "/tasks/"+w.big)
	if err != nil {
		return nil, err
	}
	var took, moved figures
	for range w.rounds {
		// The top comes near; the next page is there when a frame has shown it.
		got, err := value[[]float64](t, `new Promise(done => {
			const list = document.getElementById('messages'), first = () => list.querySelector('[data-index]');
			const from = first(), row = list.querySelectorAll('[data-index]')[3];
			row.scrollIntoView({block: 'start', behavior: 'instant'});
			const begun = performance.now(), before = row.getBoundingClientRect().top;
			let most = 0, came = 0, frames = 0;
			const look = () => {
				most = Math.max(most, Math.abs(row.getBoundingClientRect().top - before));
				if (!came && first() !== from) came = performance.now() - begun;
				if (came && ++frames > 10) done([came, most]); else requestAnimationFrame(look);
			};
			look();
		})`)
		if err != nil {
			return nil, err
		}
		took, moved = append(took, got[0]), append(moved, got[1])
	}
	return []row{
		shown.row(fmt.Sprintf("last page of %d messages, first contentful paint", w.length), "ms", "< 300 ms"),
		usable.row("the same, until it can be used", "ms", ""),
		took.row("the next page back is shown", "ms", "< 100 ms"),
		moved.row("the message in view moves meanwhile", "px", "<= 1 px"),
	}, nil
}

// scrolls is the longest frame while a long task is scrolled back.
func scrolls(_ context.Context, w *world) ([]row, error) {
	t, err := w.loggedIn(w.browser)
	if err != nil {
		return nil, err
	}
	defer t.shut()
	var most, over figures
	for range w.rounds {
		if err := errors.Join(t.fresh("/tasks/"+w.big), t.live()); err != nil {
			return nil, err
		}
		got, err := value[[]float64](t, `new Promise(done => {
			const view = document.scrollingElement;
			let last = 0, begun = 0, most = 0, over = 0;
			const step = now => {
				begun ||= now;
				if (last) {
					most = Math.max(most, now - last);
					if (now - last > 50) over++;
					view.scrollTop -= Math.min(now - last, 100) * 4; // pixels a millisecond
				}
				last = now;
				if (now - begun < 10_000) requestAnimationFrame(step); else done([most, over, +document.querySelector('#messages > [data-index]').dataset.index]);
			};
			requestAnimationFrame(step);
		})`)
		if err != nil {
			return nil, err
		}
		if int(got[2]) > w.length-120 {
			return nil, fmt.Errorf("the scroll came to message %v of %d only", got[2], w.length)
		}
		most, over = append(most, got[0]), append(over, got[1])
	}
	return []row{
		most.row("longest frame of a scroll of 10 seconds", "ms", "<= 50 ms"),
		over.row("frames of it over 50 ms", "", "0"),
	}, nil
}

// memories is what a tab holds after paging back.
func memories(_ context.Context, w *world) ([]row, error) {
	var held, swept figures
	for range max(w.rounds/3, 1) {
		browser, stop, err := w.newBrowser()
		if err != nil {
			return nil, err
		}
		more, less, err := w.pagedBack(browser)
		stop()
		if err != nil {
			return nil, err
		}
		held, swept = append(held, more), append(swept, less)
	}
	return []row{
		held.row("memory of the tab after paging through 5,000 messages", "MB", "< 150 MB"),
		swept.row("the same, once garbage is collected", "MB", ""),
	}, nil
}

// pagedBack opens the end of a task in a browser, pages back through 5,000 messages, and gives the memory of the
// renderers less that of an empty tab's, in MB, before and after garbage was collected.
func (w *world) pagedBack(browser context.Context) (held, swept float64, err error) {
	t, err := w.loggedIn(browser)
	if err != nil {
		return 0, 0, err
	}
	if err := t.fresh("/healthz"); err != nil {
		return 0, 0, err
	}
	empty, err := w.renderers(t)
	if err != nil {
		return 0, 0, err
	}
	if err := errors.Join(t.visit("/tasks/"+w.big), t.live()); err != nil {
		return 0, 0, err
	}
	first := `+document.querySelector('#messages > [data-index]').dataset.index`
	for want := min(5000, w.length-1); ; {
		at, err := value[int](t, first)
		if err != nil {
			return 0, 0, err
		}
		if w.length-at >= want {
			break
		}
		if _, err := value[bool](t, `(scrollTo(0, 0), true)`); err != nil {
			return 0, 0, err
		}
		if err := t.sees(fmt.Sprintf("%s < %d", first, at)); err != nil {
			return 0, 0, err
		}
	}
	full, err := w.renderers(t)
	if err != nil {
		return 0, 0, err
	}
	if err := chromedp.Do(t.ctx, command(heapprofiler.CollectGarbage, cdp.Empty{})); err != nil {
		return 0, 0, err
	}
	clean, err := w.renderers(t)
	return float64(full.memory-empty.memory) / (1 << 20), float64(clean.memory-empty.memory) / (1 << 20), err
}

// streams is how many frames a page shows a second while a model writes 200 words a second.
func streams(ctx context.Context, w *world) ([]row, error) {
	t, err := w.loggedIn(w.browser)
	if err != nil {
		return nil, err
	}
	defer t.shut()
	var rate, most, words figures
	for range w.rounds {
		id, err := w.play(ctx, 2000, 5*time.Millisecond)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(t.fresh("/tasks/"+id), t.sees(`document.querySelector('#live .streaming .body')?.textContent.length > 500`)); err != nil {
			return nil, err
		}
		got, err := value[[]float64](t, `new Promise(done => {
			const body = document.querySelector('#live .streaming .body'), length = () => body.textContent.split(' ').length, from = length();
			let last = 0, begun = 0, frames = 0, most = 0;
			const step = now => {
				begun ||= now;
				if (last) { frames++; most = Math.max(most, now - last); }
				last = now;
				if (now - begun < 5000 && body.isConnected) requestAnimationFrame(step);
				else done([frames * 1000 / (now - begun), most, (length() - from) * 1000 / (now - begun)]);
			};
			requestAnimationFrame(step);
		})`)
		if err != nil {
			return nil, err
		}
		rate, most, words = append(rate, got[0]), append(most, got[1]), append(words, got[2])
		if err := w.ask(ctx, "POST", "/v1/tasks/"+id+"/cancel", nil, nil); err != nil {
			return nil, err
		}
	}
	return []row{
		rate.row("frames a second beside streamed text", "", "60"),
		words.row("words that are shown a second, of 200", "", "200"),
		most.row("longest frame beside them", "ms", ""),
	}, nil
}

// idles is what a page costs while nothing happens.
func idles(_ context.Context, w *world) ([]row, error) {
	browser, stop, err := w.newBrowser()
	if err != nil {
		return nil, err
	}
	defer stop()
	t, err := w.loggedIn(browser)
	if err != nil {
		return nil, err
	}
	span := time.Minute
	if w.quick {
		span = 5 * time.Second
	}
	cost := func(path string) (float64, error) {
		if err := t.fresh(path); err != nil {
			return 0, err
		}
		time.Sleep(5 * time.Second) // what a browser does after it has loaded a page
		before, err := w.renderers(t)
		if err != nil {
			return 0, err
		}
		time.Sleep(span)
		after, err := w.renderers(t)
		return float64(after.busy-before.busy) / float64(span) * 100, err
	}
	empty, err := cost("/healthz")
	if err != nil {
		return nil, err
	}
	full, err := cost("/tasks/" + w.big)
	if err != nil {
		return nil, err
	}
	woken, err := w.wakes(t, span)
	if err != nil {
		return nil, err
	}
	return []row{
		{what: fmt.Sprintf("processor time of an idle page in %.0f s", span.Seconds()), got: fmt.Sprintf("%.3f %%", full), bar: "< 0.1 % of a core"},
		{what: "the same of an empty page", got: fmt.Sprintf("%.3f %%", empty)},
		{what: fmt.Sprintf("how often its scripts wake in %d heartbeats", int(span/(10*time.Second))), got: fmt.Sprint(woken), bar: "once a heartbeat"},
	}, nil
}

// crowds is how soon a press is answered while 50 tabs are open and a model writes.
func crowds(ctx context.Context, w *world) ([]row, error) {
	t, err := w.loggedIn(w.browser)
	if err != nil {
		return nil, err
	}
	defer t.shut()
	many := min(50, len(w.small))
	for _, id := range w.small[:many-1] {
		one, err := w.open(t.ctx, 1280, 900)
		if err != nil {
			return nil, err
		}
		defer one.shut()
		if err := errors.Join(one.visit("/tasks/"+id), one.live()); err != nil {
			return nil, err
		}
	}
	var took figures
	for range w.rounds {
		id, err := w.play(ctx, 1000, 5*time.Millisecond)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(t.fresh("/tasks/"+id), t.live(), t.sees(`document.querySelector('#live .streaming')`),
			chromedp.Do(t.ctx, command(page.BringToFront, cdp.Empty{}))); err != nil {
			return nil, err
		}
		at, err := value[[]float64](t, `(() => {
			const button = document.querySelector('[data-does=rename]'), r = button.getBoundingClientRect();
			self.answered = new Promise(done => addEventListener('mousedown', e => {
				const look = () => document.querySelector('dialog[open]') ? requestAnimationFrame(now => done(now - e.timeStamp)) : requestAnimationFrame(look);
				look();
			}, {capture: true, once: true}));
			button.scrollIntoView({block: 'center'});
			const p = button.getBoundingClientRect();
			return [p.x + p.width / 2, p.y + p.height / 2];
		})()`)
		if err != nil {
			return nil, err
		}
		if err := chromedp.Do(t.ctx, chromedp.MouseClickXY(at[0], at[1])); err != nil {
			return nil, err
		}
		ms, err := value[float64](t, "answered")
		if err != nil {
			return nil, err
		}
		took = append(took, ms)
		if err := w.ask(ctx, "POST", "/v1/tasks/"+id+"/cancel", nil, nil); err != nil {
			return nil, err
		}
	}
	return []row{took.row(fmt.Sprintf("a press is answered with %d tabs open and a model that writes", many), "ms", "< 300 ms")}, nil
}

// followers is what event streams of idle tabs cost a server that has done nothing else.
func followers(ctx context.Context, busy *world) ([]row, error) {
	var cost figures
	for i := range busy.rounds {
		w := &world{options: busy.options}
		w.dir = filepath.Join(busy.dir, fmt.Sprintf("idle%d", i))
		w.work = w.dir
		if err := errors.Join(os.MkdirAll(w.dir, 0o700), w.serve("none")); err != nil {
			return nil, err
		}
		defer w.close()
		time.Sleep(time.Second)
		before, err := usedBy(w.server.Process.Pid)
		if err != nil {
			return nil, err
		}
		var open []io.Closer
		for range 100 {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/v1/events", nil)
			if err != nil {
				return nil, err
			}
			r.Header.Set("Authorization", "Bearer "+w.token)
			answer, err := (&http.Client{Transport: &http.Transport{}}).Do(r) //nolint:bodyclose // below
			if err != nil {
				return nil, err
			}
			if answer.StatusCode != http.StatusOK {
				return nil, fmt.Errorf("follow: %s", answer.Status)
			}
			open = append(open, answer.Body)
		}
		time.Sleep(3 * time.Second)
		after, err := usedBy(w.server.Process.Pid)
		for _, c := range open {
			c.Close()
		}
		if err != nil {
			return nil, err
		}
		cost = append(cost, float64(after.memory-before.memory)/(1<<20))
	}
	return []row{cost.row("memory of the server for 100 event streams", "MB", "< 20 MB")}, nil
}

// weights is what a browser that was never here loads for its first page.
func weights(ctx context.Context, w *world) ([]row, error) {
	var rows []row
	for _, p := range []struct{ what, path string }{{"bytes of a first page, packed: History", "/"}, {"the same: a task", "/tasks/" + w.big}} {
		t, err := w.loggedIn(w.browser)
		if err != nil {
			return nil, err
		}
		t.shut()
		t, err = w.loggedIn(w.browser)
		if err != nil {
			return nil, err
		}
		err = errors.Join(chromedp.Do(t.ctx, noCache()), t.fresh(p.path), t.live())
		bytes := 0.0
		if err == nil {
			bytes, err = value[float64](t, `[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')].filter(e => !e.name.includes('/v1/')).reduce((n, e) => n + e.transferSize, 0)`)
		}
		t.shut()
		if err != nil {
			return nil, err
		}
		worker, err := w.packed(ctx, "/static/worker.js") // a page does not count what its worker loads
		if err != nil {
			return nil, err
		}
		rows = append(rows, figures{(bytes + float64(worker)) / 1024}.row(p.what, "KB", "< 100 KB"))
	}
	return rows, nil
}

// packed is the size of a file as it is sent.
func (w *world) packed(ctx context.Context, path string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+path, nil)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Accept-Encoding", "gzip")
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err == nil && (answer.StatusCode != http.StatusOK || !strings.Contains(answer.Header.Get("Content-Encoding"), "gzip")) {
		err = fmt.Errorf("%s: %s, not packed", path, answer.Status)
	}
	return len(data), err
}
