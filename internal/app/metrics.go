package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/intake/smtpd"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/store"
)

// metrics are exported to Prometheus. No label has a value that a client chooses.
type metrics struct {
	registry     *prometheus.Registry
	requests     *prometheus.CounterVec
	requestTime  *prometheus.HistogramVec
	dnsQuestions *prometheus.CounterVec
	dnsTime      *prometheus.HistogramVec
	mails        *prometheus.CounterVec
	reports      *prometheus.CounterVec
	panics       *prometheus.CounterVec
	deliveries   *prometheus.CounterVec
	deliveryTime prometheus.Histogram
	lowDisk      prometheus.Gauge
	stages
}

// buckets are bounds of durations, in seconds; metrics use those in the range of their values.
var buckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

func newCounters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func newTimes(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

func newMetrics(s *store.Store, version string, measured stages) *metrics {
	m := &metrics{
		registry:     prometheus.NewRegistry(),
		requests:     newCounters("dmarcd_http_requests_total", "Requests by route and status.", "route", "status"),
		requestTime:  newTimes("dmarcd_http_request_seconds", "Time from the header of a request to the end of its response, by route.", buckets[:14], "route"),
		dnsQuestions: newCounters("dmarcd_dns_questions_total", "DNS queries sent, by outcome.", "outcome"),
		dnsTime:      newTimes("dmarcd_dns_question_seconds", "Time from a DNS query to its answer or the last attempt.", buckets[1:14], "outcome"),
		mails:        newCounters("dmarcd_smtp_total", "SMTP connections, recipients and messages by result.", "outcome"),
		reports:      newCounters("dmarcd_reports_total", "Received reports, by intake, kind and status.", "intake", "kind", "status"),
		panics:       newCounters("dmarcd_panics_total", "Recovered panics by component; each is a bug and is logged with its stack.", "where"),
		deliveries:   newCounters("dmarcd_webhook_deliveries_total", "Attempts to deliver events to webhooks, by outcome: delivered, retried, or failed for good.", "outcome"),
		stages:       measured,
	}
	m.deliveryTime = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "dmarcd_webhook_answer_seconds", Help: "Time until the endpoint of a webhook answered.",
		Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15},
	})
	m.lowDisk = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "dmarcd_disk_low", Help: "1 if less than twice the minimum of disk space is free (limit.free_disk), else 0.",
	})
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "dmarcd_build_info", Help: "Always 1; the label is the version.", ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	m.register(m.registry)
	m.registry.MustRegister(m.requests, m.requestTime, m.dnsQuestions, m.dnsTime, m.mails, m.reports, m.panics, m.deliveries, m.deliveryTime, m.lowDisk, build, &databaseCollector{store: s},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

func (m *metrics) observeRequest(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.requestTime.WithLabelValues(route).Observe(took.Seconds())
}

func (m *metrics) observeDNS(outcome dns.Outcome, took time.Duration) {
	m.dnsQuestions.WithLabelValues(outcome.String()).Inc()
	m.dnsTime.WithLabelValues(outcome.String()).Observe(took.Seconds())
}

func (m *metrics) observeMail(outcome smtpd.Outcome) {
	m.mails.WithLabelValues(string(outcome)).Inc()
}

func (m *metrics) observeReceipts(way dmarcd.Intake, receipts []dmarcd.Receipt) {
	for _, receipt := range receipts {
		m.reports.WithLabelValues(string(way), string(receipt.Kind), string(receipt.Status)).Inc()
	}
}

func (m *metrics) observeDelivery(result dmarcd.DeliveryResult, failed bool) {
	outcome := "retried"
	switch {
	case result.Problem == "":
		outcome = "delivered"
	case failed:
		outcome = "failed"
	}
	m.deliveries.WithLabelValues(outcome).Inc()
	if result.Status != 0 {
		m.deliveryTime.Observe(result.Took.Seconds())
	}
}

// recovered is the recovered.Boundary for outside data.
func (a *App) recovered(e *recovered.Error) { a.reportPanic(e) }

// reportPanic logs and counts a panic; facts are added to the log line.
func (a *App) reportPanic(e *recovered.Error, facts ...any) {
	a.metrics.panics.WithLabelValues(e.Where).Inc()
	logPanic(a.log.With(facts...), e)
}

func logPanic(log *slog.Logger, e *recovered.Error) {
	log.Error("panic recovered", "where", e.Where, "panic", fmt.Sprint(e.Value), "stack", string(e.Stack))
}

// databaseCollector exports figures of the store.
type databaseCollector struct {
	store *store.Store

	mu       sync.Mutex
	figures  databaseFigures
	known    bool      // the figures could be read
	readNext time.Time // when to read them again
}

// databaseFigures need a database query.
type databaseFigures struct {
	stored, queued int64
	quotas         map[dmarcd.QuotaName]store.QuotaUse
	checkLag       time.Duration
}

// storedAge is the maximum age of such a figure, so that frequent scrapes cost nothing.
const storedAge = time.Minute

var (
	databaseQueries  = prometheus.NewDesc("dmarcd_database_queries_total", "Executed SQL statements.", nil, nil)
	storedBytes      = prometheus.NewDesc("dmarcd_stored_bytes", "Bytes of originals, reports and records of all teams, as counted by quotas; up to a minute old.", nil, nil)
	poolOpen         = prometheus.NewDesc("dmarcd_database_connections", "Open connections by pool and state.", []string{"pool", "state"}, nil)
	poolMax          = prometheus.NewDesc("dmarcd_database_connections_max", "Limit of open connections by pool.", []string{"pool"}, nil)
	poolWaits        = prometheus.NewDesc("dmarcd_database_waits_total", "Number of waits for a connection, by pool.", []string{"pool"}, nil)
	poolWaitTime     = prometheus.NewDesc("dmarcd_database_wait_seconds_total", "Total time spent waiting for a connection, by pool.", []string{"pool"}, nil)
	quotaTeams       = prometheus.NewDesc("dmarcd_quota_teams", "Teams that use at least this percentage (80, 100) of a quota; up to a minute old.", []string{"quota", "percent"}, nil)
	quotaHighest     = prometheus.NewDesc("dmarcd_quota_highest_ratio", "Highest use of a quota by a team; 1 is all of it. Up to a minute old.", []string{"quota"}, nil)
	checkLag         = prometheus.NewDesc("dmarcd_check_lag_seconds", "How long the scheduled check that waits longest has been due, 0 if none is; up to a minute old.", nil, nil)
	queuedDeliveries = prometheus.NewDesc("dmarcd_webhook_queue", "Pending deliveries to webhooks; up to a minute old.", nil, nil)
)

// Describe implements prometheus.Collector.
func (*databaseCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{databaseQueries, storedBytes, queuedDeliveries, quotaTeams, quotaHighest, checkLag, poolOpen, poolMax, poolWaits, poolWaitTime} {
		descs <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *databaseCollector) Collect(out chan<- prometheus.Metric) {
	stats := c.store.Stats()
	out <- prometheus.MustNewConstMetric(databaseQueries, prometheus.CounterValue, float64(stats.Queries))
	if figures, known := c.read(); known {
		out <- prometheus.MustNewConstMetric(storedBytes, prometheus.GaugeValue, float64(figures.stored))
		out <- prometheus.MustNewConstMetric(queuedDeliveries, prometheus.GaugeValue, float64(figures.queued))
		out <- prometheus.MustNewConstMetric(checkLag, prometheus.GaugeValue, figures.checkLag.Seconds())
		for _, quota := range dmarcd.QuotaNames() {
			use := figures.quotas[quota]
			out <- prometheus.MustNewConstMetric(quotaTeams, prometheus.GaugeValue, float64(use.Near), string(quota), "80")
			out <- prometheus.MustNewConstMetric(quotaTeams, prometheus.GaugeValue, float64(use.Full), string(quota), "100")
			out <- prometheus.MustNewConstMetric(quotaHighest, prometheus.GaugeValue, use.Highest, string(quota))
		}
	}
	collectPool(out, "reader", stats.Reader)
	collectPool(out, "writer", stats.Writer)
}

// read returns the figures, and false if the database is unavailable.
func (c *databaseCollector) read() (figures databaseFigures, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.After(c.readNext) {
		ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
		defer cancel()
		var errs [4]error
		c.figures.stored, errs[0] = c.store.StoredBytes(ctx)
		c.figures.queued, errs[1] = c.store.QueuedDeliveries(ctx)
		c.figures.quotas, errs[2] = c.store.QuotaUse(ctx)
		c.figures.checkLag, errs[3] = c.store.CheckLag(ctx)
		c.known, c.readNext = errors.Join(errs[:]...) == nil, now.Add(storedAge)
	}
	return c.figures, c.known
}

func collectPool(out chan<- prometheus.Metric, pool string, stats store.Pool) {
	gauge, counter := prometheus.GaugeValue, prometheus.CounterValue
	out <- prometheus.MustNewConstMetric(poolOpen, gauge, float64(stats.InUse), pool, "in use")
	out <- prometheus.MustNewConstMetric(poolOpen, gauge, float64(stats.Idle), pool, "idle")
	out <- prometheus.MustNewConstMetric(poolMax, gauge, float64(stats.Max), pool)
	out <- prometheus.MustNewConstMetric(poolWaits, counter, float64(stats.Waits), pool)
	out <- prometheus.MustNewConstMetric(poolWaitTime, counter, stats.WaitTime.Seconds(), pool)
}
