// Package web is the page that a browser gets: the history of all tasks, a task, its changes, a comparison of two, what
// was spent, the trash, the sources, the devices and the settings. It is useful without scripts: everything that only
// reads is a link or a form.
//
// The pages decide nothing. They call the service, as every route of the API does, and show its answer; a fact that
// the API lacks is added there, for all clients. Messages come as HTML from the service (package view/markup), and
// templates escape all else. Each text of a model, a tool, a repository or a file is cleaned (redact.Marked):
// characters that act or hide are replaced by their names.
//
// tools/page compiles a template, x.templ, to the Go code x_templ.go. html/template would call methods by their names,
// so the linker would keep every exported method of every library, and the program would be 8 % larger.
//
// A page is made in memory before it is sent, so that a failure gets a page of its own, and is compressed if the
// browser accepts that. Bounds: 50 tasks, 20 tasks with hits, and 80 messages or half a megabyte of them a page.
//
// The server checks requests before the handler gets them, and counts its readings; Refuse shows a browser why a
// request was refused. Files under /static/ hold nothing of any task and need no log-in.
//
// # The markup that scripts build on
//
// Every page has <body data-page="KIND">, where KIND is history, task, changes, compare, usage, trash, sources, devices,
// settings, start, trust, problem or login, and
// <meta name="roost-server" content="VERSION">, the sheet /static/page.css and, once it exists, the module
// /static/live.js. The page of a task also has
//
//	<main id="task" data-task="ID" data-source="SOURCE" data-status="STATUS" data-view="messages|raw|effective|aligned"
//	      data-cursor="CURSOR" data-first="N" data-last="M" data-total="T">
//	  <section id="questions"> with <article data-question="QID" data-kind="KIND" data-event="EVENT"> for each open question
//	  <ol id="messages"> with <li id="ui-N" data-index="N" class="CLASS"> for each message
//	  <section id="live">      empty, behind the messages: for streamed text
//	  <div id="composer" hidden>
//
// Behind the text of a message comes what the task recorded there; a checkpoint is a div.checkpoint whose second link has
// data-restore="cN". With the view aligned the list has li.pair elements, each with section.saw and section.sees.
//
// ID is the task's id as the API takes it: SOURCE:ID for tasks of other tools. CURSOR was read before the messages:
// the events behind it are all that the page may lack. First and last are the numbers of the messages on the page; both
// are 0 on an empty one. GET /v1/tasks/{id}/messages answers Accept: text/html with the same li elements, so that a
// script replaces or adds them as they are; data-last equal to data-total means that the page ends with the newest
// message.
//
// The page of the changes has <main id="changes" data-task="ID" data-prompts="N">, with a section.part for each difference
// (data-from, data-to: checkpoints, or now), in it a section.file (data-path: percent-encoded; data-hash), in it a
// section.hunk (data-hunk, data-hash, where all of it is shown), in it .lines with an element for each line: data-new or
// data-old is its number. Hash, path and number are what a restore of it names.
//
// The service worker /static/sw.js answers for a page when the server is out of reach, with /static/offline.html, and shows
// notifications. It keeps that file and the sheet, and nothing of any task.
//
// Settings and first steps have forms of class do, whose buttons work once the scripts run: data-act is the request that
// they make. They are no forms of HTML alone: a page sends no referrer, so a browser names no origin with a form of its
// own, and the server takes no change without one.
//
// Scripts get one policy of trusted types, roost: whatever they insert as HTML came from the server.
package web
