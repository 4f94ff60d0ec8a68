package controlplane

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/embed"
)

// startEtcd starts etcd in this process and returns its client URL. It disables fsync, because the data of a lab that
// crashes is not needed.
func startEtcd(ctx context.Context, dir string) (*embed.Etcd, string, error) {
	anywhere := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	cfg := embed.NewConfig()
	cfg.Name = "lab"
	cfg.Dir = filepath.Join(dir, "etcd")
	cfg.UnsafeNoFsync = true
	cfg.ListenClientUrls = []url.URL{anywhere}
	cfg.AdvertiseClientUrls = []url.URL{anywhere}
	cfg.ListenPeerUrls = []url.URL{anywhere}
	cfg.AdvertisePeerUrls = []url.URL{anywhere}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.EnableGRPCGateway = false
	log, err := etcdLog(filepath.Join(dir, "logs", "etcd.log"))
	if err != nil {
		return nil, "", err
	}
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	// With a single member no heartbeat can be late, so a short election timeout is safe.
	cfg.TickMs, cfg.ElectionMs = 10, 100
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, "", fmt.Errorf("start etcd: %w", err)
	}
	select {
	case <-e.Server.ReadyNotify():
	case err := <-e.Err():
		e.Close()
		return nil, "", fmt.Errorf("start etcd: %w", err)
	case <-ctx.Done():
		e.Close()
		return nil, "", fmt.Errorf("start etcd: %w", context.Cause(ctx))
	}
	return e, "http://" + e.Clients[0].Addr().String(), nil
}
