package sandbox

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
)

// usualPorts returns the ports at which the sandbox always listens, to record calls to addresses that are not in
// Spec.Outbound.
func usualPorts() []string { return []string{"53", "80", "443"} }

// blockedCalls records the calls to addresses that are not in Spec.Outbound, see Spec.BlockedCalls.
type blockedCalls struct {
	mu   sync.Mutex
	file *os.File
}

func (b *blockedCalls) record(network, address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintln(b.file, network, address)
}

// listen starts to serve all addresses of the sandbox, and the inbound sockets. The goroutines that it starts end with
// the process.
func (s Spec) listen() error {
	file, err := os.OpenFile(s.BlockedCalls, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the file of blocked calls: %w", err)
	}
	log := &blockedCalls{file: file}
	ports := map[string]bool{}
	for _, port := range usualPorts() {
		ports[port] = true
	}
	for address := range s.Outbound {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return fmt.Errorf("read outbound address %q: %w", address, err)
		}
		ports[port] = true
	}
	for port := range ports {
		l, err := net.Listen("tcp4", ":"+port)
		if err != nil {
			return fmt.Errorf("listen in the sandbox: %w", err)
		}
		go accept(l, func(c net.Conn) { s.forwardOrRecord(c, log) })
	}
	dns, err := net.ListenPacket("udp4", ":53")
	if err != nil {
		return fmt.Errorf("listen in the sandbox: %w", err)
	}
	go recordQueries(dns, log)
	for socket, address := range s.Inbound {
		l, err := net.Listen("unix", socket)
		if err != nil {
			return fmt.Errorf("open an inbound socket: %w", err)
		}
		go accept(l, func(c net.Conn) { connect(c, "tcp", address) })
	}
	return nil
}

// forwardOrRecord forwards a call to the socket of its outbound address. It records and closes a call to any other
// address.
func (s Spec) forwardOrRecord(c net.Conn, log *blockedCalls) {
	address := c.LocalAddr().String()
	if socket, ok := s.Outbound[address]; ok {
		connect(c, "unix", socket)
		return
	}
	log.record("tcp", address)
	_ = c.Close()
}

// recordQueries records DNS queries without a response.
func recordQueries(l net.PacketConn, log *blockedCalls) {
	packet := make([]byte, 512)
	for {
		n, _, err := l.ReadFrom(packet)
		if err != nil {
			return
		}
		log.record("udp", "53 "+queriedName(packet[:n]))
	}
}

// queriedName returns the name in a DNS query. Each label follows a byte with its length; 0 ends the name.
func queriedName(packet []byte) string {
	const header = 12 // bytes before the first question
	var labels []string
	for at := header; at < len(packet) && packet[at] != 0; {
		end := at + 1 + int(packet[at])
		if end > len(packet) {
			break
		}
		labels = append(labels, string(packet[at+1:end]))
		at = end
	}
	return strings.Join(labels, ".")
}

// accept calls serve, in a goroutine, for each connection of a listener, until the listener is closed.
func accept(l net.Listener, serve func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go serve(c)
	}
}

// Forward forwards each connection of a listener to an address, until the listener is closed.
func Forward(l net.Listener, network, address string) {
	accept(l, func(c net.Conn) { connect(c, network, address) })
}

// connect opens a connection to an address, and copies bytes in both directions until both sides have closed.
func connect(from net.Conn, network, address string) {
	defer from.Close()
	to, err := net.Dial(network, address)
	if err != nil {
		return // the caller sees a closed connection
	}
	defer to.Close()
	var both sync.WaitGroup
	for _, direction := range [][2]net.Conn{{to, from}, {from, to}} { // target, source
		both.Go(func() {
			_, _ = io.Copy(direction[0], direction[1])
			if half, ok := direction[0].(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
		})
	}
	both.Wait()
}
