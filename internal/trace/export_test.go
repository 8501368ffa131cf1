package trace

// QueueLength is how many spans wait at most.
const QueueLength = queueLength
