// Package wire holds what every HTTP model provider needs and none should write
// again: making a call, reading server-sent events, noticing a stalled stream,
// telling errors apart by status and wording, waiting between attempts, sending
// bodies of megabytes without copying them, translating only the messages that are
// new, and keeping keys out of error texts.
//
// It knows Roo's stored blocks and no provider's messages. Nothing but a History
// keeps state between calls; nothing starts goroutines that outlive a call, or logs.
package wire
