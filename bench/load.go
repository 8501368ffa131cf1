package main

import (
	"bufio"
	"context"
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
func load(ctx context.Context, address string, clients int, d time.Duration, status int, next func(n int64) []byte) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var answered, number atomic.Int64
	var group sync.WaitGroup
	errs := make(chan error, clients)
	began := time.Now()
	for range clients {
		group.Go(func() {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			if err != nil {
				errs <- err
				return
			}
			defer func() { _ = conn.Close() }() // nothing is written any more
			reader := bufio.NewReader(conn)
			for ctx.Err() == nil {
				if err := exchange(conn, reader, next(number.Add(1)), status); err != nil {
					errs <- err
					return
				}
				answered.Add(1)
			}
		})
	}
	group.Wait()
	took := time.Since(began)
	select {
	case err := <-errs:
		return 0, err
	default:
		return float64(answered.Load()) / took.Seconds(), nil
	}
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
type side func() (float64, error)

// compare lets both sides take turns and returns the median rate of each and the
// median of the ratios of neighbouring turns.
func compare(rounds int, ours, theirs side) (ourRate, theirRate, ratio float64, err error) {
	var all [3][]float64
	for range rounds {
		a, err := ours()
		if err != nil {
			return 0, 0, 0, err
		}
		b, err := theirs()
		if err != nil {
			return 0, 0, 0, err
		}
		for i, v := range []float64{a, b, a / b} {
			all[i] = append(all[i], v)
		}
	}
	return median(all[0]), median(all[1]), median(all[2]), nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
