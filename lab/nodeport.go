package lab

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/joiner-sh/joiner/lab/kubelet"
	"github.com/joiner-sh/joiner/lab/pki"
)

// kubeletPort is the port of a kubelet's HTTPS server.
const kubeletPort = "10250"

// nodePorts connects the API server to the kubelets. The addresses of emulated instances do not exist on this computer,
// so the API server connects through a proxy on a socket. Port 10250 of every node leads to the emulated kubelets; all
// other connections are rejected.
type nodePorts struct {
	socket string
	fleet  atomic.Pointer[kubelet.Fleet] // nil until kubelets can start
	dialed chan net.Conn                 // accepted connections to kubelets, from proxy to server
	done   chan struct{}                 // closed by Close
	once   sync.Once                     // closes done
	proxy  *http.Server                  // handles CONNECT on the socket
	server *http.Server                  // the kubelets' server on port 10250 of every node
}

// openNodePorts starts the proxy and the kubelets' server.
func openNodePorts(home string, authority *pki.Authority) (*nodePorts, error) {
	n := &nodePorts{socket: filepath.Join(home, "nodes"), dialed: make(chan net.Conn), done: make(chan struct{})}
	certificate, err := serverCertificate(authority, "kubelet")
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", n.socket)
	if err != nil {
		return nil, fmt.Errorf("listen for connections to nodes: %w", err)
	}
	n.server = &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if f := n.fleet.Load(); f != nil {
				f.ServeHTTP(w, r)
				return
			}
			http.Error(w, "the kubelets have not started yet", http.StatusServiceUnavailable)
		}),
	}
	n.proxy = &http.Server{Handler: http.HandlerFunc(n.connect), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = n.server.ServeTLS(n, "", "") }()
	go func() { _ = n.proxy.Serve(listener) }()
	return n, nil
}

// connect handles a request to the proxy. It accepts only CONNECT to the kubelets' port.
func (n *nodePorts) connect(w http.ResponseWriter, r *http.Request) {
	_, port, err := net.SplitHostPort(r.Host)
	if r.Method != http.MethodConnect || err != nil || port != kubeletPort {
		http.Error(w, "no route to host "+r.Host, http.StatusBadGateway)
		return
	}
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if _, err := c.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		_ = c.Close()
		return
	}
	select {
	case n.dialed <- c:
	case <-n.done:
		_ = c.Close()
	}
}

// Accept returns the next connection to a kubelet. nodePorts implements net.Listener for the kubelets' server.
func (n *nodePorts) Accept() (net.Conn, error) {
	select {
	case c := <-n.dialed:
		return c, nil
	case <-n.done:
		return nil, net.ErrClosed
	}
}

// Close closes the kubelets' port: Accept then fails, and the proxy closes new connections to kubelets. The returned
// error is always nil.
func (n *nodePorts) Close() error {
	n.once.Do(func() { close(n.done) })
	return nil
}

// Addr returns the address of the proxy's socket.
func (n *nodePorts) Addr() net.Addr { return &net.UnixAddr{Name: n.socket, Net: "unix"} }

// stop closes the port, the proxy and the kubelets' server.
func (n *nodePorts) stop() error { return errors.Join(n.Close(), n.proxy.Close(), n.server.Close()) }

// ShowLog makes `kubectl logs` of a pod show the lab's log with the given name.
func (l *Lab) ShowLog(namespace, pod, name string) { l.fleet.SetLogFile(namespace, pod, l.Logs(name)) }
