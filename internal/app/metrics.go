package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
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
	dnsQueries   *prometheus.CounterVec
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

func newMetrics(version string, measured stages) *metrics {
	m := &metrics{
		registry:    prometheus.NewRegistry(),
		requests:    newCounters("dmarcd_http_requests_total", "Requests by route and status.", "route", "status"),
		requestTime: newTimes("dmarcd_http_request_seconds", "Time from the header of a request to the end of its response, by route.", buckets[:14], "route"),
		dnsQueries:  newCounters("dmarcd_dns_queries_total", "DNS queries sent, by outcome.", "outcome"),
		dnsTime:     newTimes("dmarcd_dns_query_seconds", "Time from a DNS query to its answer or the last attempt.", buckets[1:14], "outcome"),
		mails:       newCounters("dmarcd_smtp_total", "SMTP connections, recipients and messages by result.", "outcome"),
		reports:     newCounters("dmarcd_reports_total", "Received reports, by intake, kind and status.", "intake", "kind", "status"),
		panics:      newCounters("dmarcd_panics_total", "Recovered panics by component; each is a bug and is logged with its stack.", "where"),
		deliveries:  newCounters("dmarcd_webhook_deliveries_total", "Attempts to deliver events to webhooks, by outcome: delivered, retried, or failed for good.", "outcome"),
		stages:      measured,
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
	m.registry.MustRegister(m.requests, m.requestTime, m.dnsQueries, m.dnsTime, m.mails, m.reports, m.panics, m.deliveries, m.deliveryTime, m.lowDisk, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// watch adds the figures of the database, once it is open.
func (m *metrics) watch(s *store.Store) { m.registry.MustRegister(&databaseCollector{store: s}) }

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

func (m *metrics) observeRequest(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.requestTime.WithLabelValues(route).Observe(took.Seconds())
}

func (m *metrics) observeDNS(outcome dns.Outcome, took time.Duration) {
	m.dnsQueries.WithLabelValues(outcome.String()).Inc()
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

// stageVerify is the stage of intake that authenticates a mail; the others are those of
// intake.Acceptor.
const stageVerify = "verify"

// stages measures the way of a report from its arrival to the database, and background jobs.
type stages struct {
	intake *prometheus.HistogramVec
	spool  prometheus.Histogram
	jobs   *prometheus.HistogramVec
	query  prometheus.Histogram
	checks *prometheus.HistogramVec
}

func newStages() stages {
	return stages{
		intake: newTimes("dmarcd_intake_seconds", "Time of a stage of intake: verify authenticates a mail, read parses a message including the wait for its turn, store writes deliveries to the database.",
			buckets[1:], "stage"),
		spool: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "dmarcd_spool_seconds", Help: "Time from the acknowledgement of a message until its reports are in the database.",
			Buckets: []float64{.01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 900, 3600},
		}),
		query: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "dmarcd_database_query_seconds", Help: "Time of a database statement, including the time to read its rows.",
			Buckets: []float64{.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5, 10, 30},
		}),
		jobs:   newTimes("dmarcd_job_seconds", "Time of a step of a background job, by its name and outcome (done, failed).", buckets[1:], "name", "outcome"),
		checks: newTimes("dmarcd_check_seconds", "Time of a scheduled check of a domain, by kind (dmarc, full) and outcome (done, failed).", buckets[1:], "kind", "outcome"),
	}
}

func (s stages) register(r prometheus.Registerer) {
	r.MustRegister(s.intake, s.spool, s.jobs, s.query, s.checks)
}

func (s stages) observeIntake(stage string, took time.Duration) {
	s.intake.WithLabelValues(stage).Observe(took.Seconds())
}

func (s stages) observeJob(job string, took time.Duration, err error) {
	s.jobs.WithLabelValues(job, outcomeOf(err)).Observe(took.Seconds())
}

func (s stages) observeCheck(full bool, took time.Duration, err error) {
	kind := "dmarc"
	if full {
		kind = "full"
	}
	s.checks.WithLabelValues(kind, outcomeOf(err)).Observe(took.Seconds())
}

// maxLoggedQuery limits a logged statement, in bytes: one that inserts many rows is long.
const maxLoggedQuery = 1000

// slowQuery is the time from which a database statement is logged.
const slowQuery = time.Second

// observeQuery returns a function that measures a database statement, and logs it if it took
// slow or longer. It has placeholders instead of values.
func (s stages) observeQuery(log *slog.Logger, slow time.Duration) func(query string, took time.Duration) {
	return func(query string, took time.Duration) {
		s.query.Observe(took.Seconds())
		if slow == 0 || took < slow {
			return
		}
		text := strings.Join(strings.Fields(query), " ")
		log.Warn("slow query", "took_ms", took.Milliseconds(), "query", text[:min(len(text), maxLoggedQuery)])
	}
}

func outcomeOf(err error) string {
	if err != nil {
		return "failed"
	}
	return "done"
}

// spoolCollector exports figures of the mail spool. Without SMTP they are 0.
type spoolCollector struct{ app *App }

var (
	spoolMessages = prometheus.NewDesc("dmarcd_spool_messages", "Acknowledged messages that are not in the database yet.", nil, nil)
	spoolBytes    = prometheus.NewDesc("dmarcd_spool_bytes", "Size of the mail spool in bytes.", nil, nil)
	spoolAge      = prometheus.NewDesc("dmarcd_spool_age_seconds", "Age of the oldest message in the spool.", nil, nil)
)

// Describe implements prometheus.Collector.
func (spoolCollector) Describe(descs chan<- *prometheus.Desc) {
	descs <- spoolMessages
	descs <- spoolBytes
	descs <- spoolAge
}

// Collect implements prometheus.Collector.
func (c spoolCollector) Collect(out chan<- prometheus.Metric) {
	var (
		messages int
		bytes    int64
		age      time.Duration
	)
	if c.app.spool != nil {
		messages, bytes = c.app.spool.Stats()
		age = c.app.spool.Age()
	}
	out <- prometheus.MustNewConstMetric(spoolMessages, prometheus.GaugeValue, float64(messages))
	out <- prometheus.MustNewConstMetric(spoolBytes, prometheus.GaugeValue, float64(bytes))
	out <- prometheus.MustNewConstMetric(spoolAge, prometheus.GaugeValue, age.Seconds())
}

// zoneCollector exports figures of the DNS server for managed records. Without a zone there are none.
type zoneCollector struct{ app *App }

var (
	zoneQueries     = prometheus.NewDesc("dmarcd_zone_queries_total", "Queries to the DNS server of the zone, by result: data, nodata, nxdomain, refused, failed.", []string{"result"}, nil)
	zoneLimited     = prometheus.NewDesc("dmarcd_zone_limited_total", "Answers of the DNS server that a limit truncated or dropped, and connections that it closed.", []string{"how"}, nil)
	zoneTransfers   = prometheus.NewDesc("dmarcd_zone_transfers_total", "Transfers of the zone, by result: whole, incremental, rejected.", []string{"result"}, nil)
	zoneNotify      = prometheus.NewDesc("dmarcd_zone_notify_failures_total", "NOTIFY messages that a secondary did not accept.", nil, nil)
	zoneNamesServed = prometheus.NewDesc("dmarcd_zone_names", "Names in the zone that have records.", nil, nil)
	zoneSerial      = prometheus.NewDesc("dmarcd_zone_serial", "Serial of the zone that is served.", nil, nil)
	zoneAge         = prometheus.NewDesc("dmarcd_zone_age_seconds", "Time since the zone was last compared with the database.", nil, nil)
	zoneSnapshots   = prometheus.NewDesc("dmarcd_zone_snapshot_failures_total", "Snapshots of the zone that could not be saved.", nil, nil)
)

// Describe implements prometheus.Collector.
func (zoneCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{zoneQueries, zoneLimited, zoneTransfers, zoneNotify, zoneNamesServed, zoneSerial, zoneAge, zoneSnapshots} {
		descs <- desc
	}
}

// Collect implements prometheus.Collector.
func (c zoneCollector) Collect(out chan<- prometheus.Metric) {
	z := c.app.zone
	if z == nil {
		return
	}
	stats := z.server.Stats()
	for _, f := range []struct {
		desc  *prometheus.Desc
		value uint64
		label []string
	}{
		{zoneQueries, stats.Answered, []string{"data"}},
		{zoneQueries, stats.NoData, []string{"nodata"}},
		{zoneQueries, stats.NoName, []string{"nxdomain"}},
		{zoneQueries, stats.Refused, []string{"refused"}},
		{zoneQueries, stats.Failed, []string{"failed"}},
		{zoneLimited, stats.Truncated, []string{"truncated"}},
		{zoneLimited, stats.Dropped, []string{"dropped"}},
		{zoneLimited, stats.Connections, []string{"connection"}},
		{zoneTransfers, stats.Whole, []string{"whole"}},
		{zoneTransfers, stats.Incremental, []string{"incremental"}},
		{zoneTransfers, stats.Rejected, []string{"rejected"}},
		{zoneNotify, stats.NotifyFailures, nil},
		{zoneSnapshots, z.saveFailures.Load(), nil},
	} {
		out <- prometheus.MustNewConstMetric(f.desc, prometheus.CounterValue, float64(f.value), f.label...)
	}
	out <- prometheus.MustNewConstMetric(zoneNamesServed, prometheus.GaugeValue, float64(z.zone.Size()))
	out <- prometheus.MustNewConstMetric(zoneSerial, prometheus.GaugeValue, float64(z.zone.Serial()))
	out <- prometheus.MustNewConstMetric(zoneAge, prometheus.GaugeValue, float64(time.Now().Unix()-z.polled.Load()))
}
