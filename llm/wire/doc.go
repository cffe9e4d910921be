// Package wire holds what every HTTP model provider needs and none should write
// again: reading server-sent events, noticing a stalled stream, telling errors
// apart by status and wording, waiting between attempts, sending bodies of megabytes
// without copying them, and keeping keys out of error texts.
//
// It knows no provider's messages. Nothing here keeps state between calls, starts
// goroutines that outlive a call, or logs.
package wire
