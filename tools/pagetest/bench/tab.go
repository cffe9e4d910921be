package main

import (
	"context"
	"fmt"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// tab is a page of a browser.
type tab struct {
	*world
	ctx  context.Context
	shut func()
}

// open opens a tab in a browser.
func (w *world) open(browser context.Context, width, height int64) (*tab, error) {
	ctx, end := chromedp.NewContext(browser)
	t := &tab{world: w, ctx: ctx, shut: end}
	return t, chromedp.Do(ctx, chromedp.EmulateViewport(width, height))
}

// loggedIn opens a tab of a person of their own, who has logged in.
func (w *world) loggedIn(browser context.Context) (*tab, error) {
	ctx, end := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	if err := chromedp.Do(ctx); err != nil {
		end()
		return nil, err
	}
	link, err := w.loginLink(ctx)
	if err != nil {
		end()
		return nil, err
	}
	t := &tab{world: w, ctx: ctx, shut: end}
	return t, chromedp.Do(ctx, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(link))
}

// before runs a script before each page that the tab opens from now on.
func (t *tab) before(script string) error {
	return chromedp.Do(t.ctx, command(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script}))
}

func (t *tab) visit(path string) error {
	ctx, stop := context.WithTimeout(t.ctx, time.Minute)
	defer stop()
	return chromedp.Do(ctx, chromedp.Navigate(t.url+path))
}

// fresh leaves the page that is open, and visits another one.
func (t *tab) fresh(path string) error {
	if err := chromedp.Do(t.ctx, chromedp.Navigate("about:blank")); err != nil {
		return err
	}
	return t.visit(path)
}

// sees waits until an expression is true.
func (t *tab) sees(expression string) error {
	return until(t.ctx, expression, func() (bool, error) { return value[bool](t, "!!("+expression+")") })
}

func (t *tab) live() error { return t.sees(`document.body?.dataset.live === 'true'`) }

// value evaluates an expression, and waits for a promise.
func value[T any](t *tab, expression string) (T, error) {
	ctx, stop := context.WithTimeout(t.ctx, time.Minute)
	defer stop()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		return v, fmt.Errorf("evaluate %.200s: %w", expression, err)
	}
	return v, nil
}

// command is an action that sends one command of the protocol.
func command[P, R any](c cdp.Command[P, R], p P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, p)
		return err
	})
}
