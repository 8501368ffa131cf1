package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// request returns the bytes of a request. The load generator shares the
// machine with the daemon, so it writes them as they are and does little else.
func request(method, path, token, body string) []byte {
	text := method + " " + path + " HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer " + token + "\r\n"
	if body != "" {
		text += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	return []byte(text + "\r\n" + body)
}

// load sends requests over several connections for a while and returns how many
// were answered with that status in a second. next makes the request of a number.
func load(ctx context.Context, address string, clients int, d time.Duration, status int, next func(n int) []byte) float64 {
	conns, readers := make([]net.Conn, clients), make([]*bufio.Reader, clients)
	for i := range conns {
		conns[i] = get((&net.Dialer{}).DialContext(ctx, "tcp", address))
		defer func() { _ = conns[i].Close() }() // nothing is written any more
		readers[i] = bufio.NewReader(conns[i])
	}
	return repeat(ctx, clients, d, func(client, n int) error { return exchange(conns[client], readers[client], next(n), status) })
}

// repeat has several clients run f over and over for a while, each with numbers of its own,
// and returns how often in a second.
func repeat(ctx context.Context, clients int, d time.Duration, f func(client, n int) error) float64 {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var done atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, clients)
	began := time.Now()
	for client := range clients {
		group.Go(func() {
			for n := client; ctx.Err() == nil; n += clients {
				if errs[client] = f(client, n); errs[client] != nil {
					return
				}
				done.Add(1)
			}
		})
	}
	group.Wait()
	must(errors.Join(errs...))
	return float64(done.Load()) / time.Since(began).Seconds()
}

func exchange(conn net.Conn, reader *bufio.Reader, request []byte, status int) error {
	if _, err := conn.Write(request); err != nil {
		return err
	}
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // read to its end
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != status {
		err = fmt.Errorf("got status %d, want %d: %s", response.StatusCode, status, body)
	}
	return err
}

// side is one side of a comparison: a turn of it returns a rate.
type side func() float64

// compare lets both sides take turns and returns the median rate of each and the
// median of the ratios of neighbouring turns.
func compare(rounds int, ours, theirs side) (ourRate, theirRate, ratio float64) {
	var all [3][]float64
	for range rounds {
		a, b := ours(), theirs()
		for i, v := range []float64{a, b, a / b} {
			all[i] = append(all[i], v)
		}
	}
	return median(all[0]), median(all[1]), median(all[2])
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
