package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"
)

// used is what processes hold and did.
type used struct {
	memory int64 // bytes: their own, and their share of what they have in common with others
	busy   time.Duration
}

// usedBy reads what a process holds and did from the kernel.
func usedBy(pid int) (u used, err error) {
	proc := fmt.Sprintf("/proc/%d/", pid)
	rollup, err := os.ReadFile(proc + "smaps_rollup")
	if err != nil {
		return u, fmt.Errorf("memory of a process: %w", err)
	}
	_, rest, _ := strings.Cut(string(rollup), "\nPss:")
	kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]), " kB"), 10, 64)
	if err != nil {
		return u, fmt.Errorf("memory of a process: %w", err)
	}
	u.memory = kb << 10
	threads, err := os.ReadDir(proc + "task")
	for _, t := range threads {
		stat, gone := os.ReadFile(proc + "task/" + t.Name() + "/schedstat")
		if gone != nil {
			continue // the thread has ended
		}
		ns, bad := strconv.ParseInt(strings.Fields(string(stat))[0], 10, 64)
		err = errors.Join(err, bad)
		u.busy += time.Duration(ns)
	}
	return u, err
}

// renderers is what all renderers of a tab's browser hold and did.
func (w *world) renderers(t *tab) (sum used, err error) {
	var list []*systeminfo.ProcessInfo
	err = chromedp.Do(t.ctx, chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		got, err := cdp.Call(ctx, chromedp.FromContext(ctx).Browser, systeminfo.GetProcessInfo, cdp.Empty{})
		if err == nil {
			list = got.ProcessInfo
		}
		return err
	}))
	for _, p := range list {
		if p.Type != "renderer" {
			continue
		}
		one, gone := usedBy(int(p.ID))
		if gone != nil {
			continue // it has ended
		}
		sum.memory += one.memory
		sum.busy += one.busy
	}
	return sum, err
}

// counting counts what wakes the scripts of a page or a worker: timers, frames, what came from the stream, messages.
const counting = `(() => {
	self.woken ??= 0;
	for (const name of ['setTimeout', 'setInterval', 'requestAnimationFrame']) {
		const real = self[name];
		if (real) self[name] = (f, ...rest) => real.call(self, (...a) => { woken++; return f(...a); }, ...rest);
	}
	const read = ReadableStreamDefaultReader.prototype.read;
	ReadableStreamDefaultReader.prototype.read = async function (...a) { const got = await read.apply(this, a); woken++; return got; };
	const port = Object.getOwnPropertyDescriptor(MessagePort.prototype, 'onmessage');
	Object.defineProperty(MessagePort.prototype, 'onmessage', {...port, set(f) { port.set.call(this, e => { woken++; f(e); }); }});
	return true;
})()`

// wakes counts how often the scripts of an idle page and its worker wake.
func (w *world) wakes(t *tab, span time.Duration) (int, error) {
	if err := errors.Join(t.before(counting), t.fresh("/tasks/"+w.big), t.live()); err != nil {
		return 0, err
	}
	var worker *tab
	err := until(t.ctx, "the worker is there", func() (bool, error) {
		all, err := chromedp.Targets(t.ctx)
		for _, one := range all {
			if one.Type == "shared_worker" {
				ctx, end := chromedp.NewContext(t.ctx, chromedp.WithTargetID(one.TargetID))
				worker = &tab{world: w, ctx: ctx, shut: end}
				return true, chromedp.Do(ctx)
			}
		}
		return false, err
	})
	if err != nil {
		return 0, err
	}
	defer worker.shut()
	if _, err := value[bool](worker, counting); err != nil {
		return 0, err
	}
	time.Sleep(12 * time.Second) // the read and the timer that were under way are counted no more
	total := func() (int, error) {
		mine, err := value[int](t, "woken")
		its, failed := value[int](worker, "woken")
		return mine + its, errors.Join(err, failed)
	}
	before, err := total()
	if err != nil {
		return 0, err
	}
	time.Sleep(span)
	after, err := total()
	return after - before, err
}

// noCache makes each visit the first one: nothing comes from the cache or through the service worker.
func noCache() chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		if _, err := cdp.Call(ctx, t, network.Enable, network.EnableParams{}); err != nil {
			return err
		}
		if _, err := cdp.Call(ctx, t, network.SetBypassServiceWorker, network.SetBypassServiceWorkerParams{Bypass: true}); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, t, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true})
		return err
	})
}
