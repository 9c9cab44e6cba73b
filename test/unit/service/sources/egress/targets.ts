import t from 'tap'
import { isPublicAddress } from '../../../../../src/service/sources/egress/ip-address.ts'
import { readTarget, refuseTarget, type Refusal } from '../../../../../src/service/sources/egress/target.ts'

const POLICY = {
  own: ['api.our-service.com', 'mcp.our-service.com'],
  allow: ['127.0.0.1:8080', 'wiki.corp:80'],
}

function verdict(text: string): Refusal | 'may be asked' {
  const url = readTarget(text)
  return typeof url === 'string' ? url : (refuseTarget(url, POLICY) ?? 'may be asked')
}

/** One target a line; what is written before the colon refuses them all. */
const HOSTILE: Readonly<Partial<Record<Refusal, readonly string[]>>> = {
  address: [
    // loopback in every spelling the URL standard knows
    'http://127.0.0.1/',
    'http://127.0.0.1./',
    'http://127.1/',
    'http://127.0.1/',
    'http://2130706433/',
    'http://0x7f000001/',
    'http://0x7f.1/',
    'http://0X7F.0.0.0x1/',
    'http://0177.0.0.1/',
    'http://017700000001/',
    'http://127.0.0.0x1/',
    'http://127.255.255.254/',
    'http://%31%32%37.0.0.1/',
    'http://１２７.０.０.１/',
    'http://①②⑦.0.0.1/',
    'http://127。0。0。1/',
    'http://127．0．0．1/',
    'http:127.0.0.1',
    'http:///127.0.0.1/',
    'http:\\\\127.0.0.1\\',
    'HTTP://127.0.0.1/',
    // nothing, and this host
    'http://0/',
    'http://0.0.0.0/',
    'http://0x0/',
    'http://00000000000/',
    'http://[::]/',
    'http://[::1]/',
    'http://[0:0:0:0:0:0:0:1]/',
    'http://[0000::0001]/',
    // private networks
    'http://10.0.0.1/',
    'http://10.255.255.255/',
    'http://167772161/',
    'http://012.0.0.1/',
    'http://172.16.0.1/',
    'http://172.31.255.255/',
    'http://192.168.1.1/',
    'http://0xc0a80101/',
    'http://192.168.257/',
    'http://100.64.0.1/',
    'http://100.127.255.255/',
    // metadata services
    'http://169.254.169.254/latest/meta-data/',
    'http://2852039166/',
    'http://0xA9FEA9FE/',
    'http://0251.0376.0251.0376/',
    'http://169.254.43518/',
    'http://169.254.170.2/v2/credentials',
    'http://[fd00:ec2::254]/latest/meta-data/',
    'http://100.100.100.200/latest/meta-data/',
    'http://192.0.0.192/opc/v2/instance/',
    'http://168.63.129.16/machine?comp=goalstate',
    'http://[::ffff:169.254.169.254]/',
    'http://[::ffff:a9fe:a9fe]/',
    'https://[64:ff9b::169.254.169.254]/',
    // reserved, documentation, benchmarks, multicast, broadcast
    'http://192.0.0.8/',
    'http://192.0.2.1/',
    'http://198.18.0.1/',
    'http://198.51.100.7/',
    'http://203.0.113.9/',
    'http://192.88.99.1/',
    'http://224.0.0.1/',
    'http://239.255.255.250/',
    'http://240.0.0.1/',
    'http://255.255.255.255/',
    'http://4294967295/',
    // an IPv4 address inside an IPv6 one: mapped, compatible, SIIT, NAT64, 6to4, Teredo
    'http://[::ffff:127.0.0.1]/',
    'http://[::ffff:7f00:1]/',
    'http://[0:0:0:0:0:ffff:10.0.0.1]/',
    'http://[::ffff:8.8.8.8]/',
    'http://[::127.0.0.1]/',
    'http://[::7f00:1]/',
    'http://[::ffff:0:127.0.0.1]/',
    'http://[64:ff9b::7f00:1]/',
    'http://[64:ff9b::8.8.8.8]/',
    'http://[64:ff9b:1::10.0.0.1]/',
    'http://[2002:7f00:1::]/',
    'http://[2002:c0a8:101::1]/',
    'http://[2001::1]/',
    'http://[2001:0:7f00:1::]/',
    // other parts of IPv6
    'http://[fe80::1]/',
    'http://[febf::1]/',
    'http://[fec0::1]/',
    'http://[fc00::1]/',
    'http://[fd12:3456:789a::1]/',
    'http://[ff02::1]/',
    'http://[100::1]/',
    'http://[2001:db8::1]/',
    'http://[2001:10::1]/',
    'http://[3fff::1]/',
    'http://[5f00::1]/',
    'http://[4000::1]/',
    // the operator has opened another socket of this host, not this one
    'http://127.0.0.1:80/',
    'http://127.0.0.2:8080/',
    'http://8.8.8.8:8080/',
    'http://[::1]:8080/',
  ],
  name: [
    'http://localhost/',
    'http://LOCALHOST/',
    'http://localhost./',
    'http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/',
    'http://loc%61lhost/',
    'http://foo.localhost/',
    'http://intranet/',
    'http://kubernetes.default.svc/',
    'http://kubernetes.default.svc.cluster.local/',
    'http://metadata/',
    'http://metadata.google.internal/computeMetadata/v1/',
    'http://router.home/',
    'http://nas.lan/',
    'http://printer.local/',
    'http://db.corp/',
    'http://wiki.corp:443/',
    'http://app.test/',
    'http://site.example/',
    'http://site.invalid/',
    'http://expyuzz4wqqyqhjn.onion/',
    'http://1.0.0.127.in-addr.arpa/',
    'http://home.arpa/',
    'http://com/',
    'http://example..com/',
    'http://-a.example.com/',
    `http://${'a'.repeat(64)}.com/`,
    `http://${'a.'.repeat(130)}com/`,
    'http://*.example.com/',
  ],
  scheme: [
    'file:///etc/passwd',
    'file://127.0.0.1/etc/passwd',
    'ftp://example.com/',
    'gopher://127.0.0.1:6379/_FLUSHALL',
    'dict://example.com:11211/stat',
    'ldap://example.com/',
    'ws://example.com/',
    'data:text/html,<p>x',
    'javascript:alert(1)',
    'blob:https://example.com/1',
    'about:blank',
    'mailto:a@example.com',
    'view-source:http://example.com/',
    'jar:http://example.com!/',
    'unix:/var/run/docker.sock',
    'localhost:80',
  ],
  credentials: [
    'http://user@example.com/',
    'http://user:word@example.com/',
    'http://:word@example.com/',
    'http://example.com@127.0.0.1/',
    'http://example.com:80@127.0.0.1/',
    'http://example.com%2F@127.0.0.1/',
    'https://127.0.0.1:80@example.com/',
    'http://example.com%00@127.0.0.1/',
  ],
  port: [
    'http://example.com:22/',
    'http://example.com:25/',
    'http://example.com:6379/',
    'http://example.com:8000/',
    'http://example.com:65535/',
    'http://127.0.0.1:6379/',
    'https://example.com:0/',
  ],
  own: [
    'https://api.our-service.com/paid/util/extract',
    'http://API.our-service.com./',
    'https://mcp.our-service.com:8443/',
  ],
  length: [`https://example.com/${'a'.repeat(2048)}`, `https://example.com/${'ä'.repeat(400)}`],
  malformed: [
    '',
    ' ',
    'example.com',
    '//example.com/',
    '/etc/passwd',
    'http://',
    'http://[::1',
    'http://[fe80::1%25eth0]/',
    'http://999.1.1.1/',
    'http://1.2.3.4.5/',
    'http://0x100000000/',
    'http://256.256.256.256/',
    'http://exa mple.com/',
    'http://example.com/\r\nX-Injected: 1',
    'http://exam\nple.com/',
    'http://exam\tple.com/',
    'http://example.com\u0000.evil.com/',
    'http://example.com:99999/',
    'http://example.com:80a/',
    'http://exa<mple.com/',
    'http://%zz.com/',
  ],
}

t.test('refuses internal addresses in every spelling', async (t) => {
  let targets = 0
  for (const [refusal, texts] of Object.entries(HOSTILE)) {
    for (const text of texts) {
      t.equal(verdict(text), refusal, JSON.stringify(text).slice(0, 90))
      targets += 1
    }
  }
  t.ok(targets >= 120, `${targets} hostile targets`)
})

t.test('reaches pages of the public Internet', async (t) => {
  for (const text of [
    'https://example.com/',
    'http://example.com:80/a?b=c#d',
    'https://www.example.co.uk:443/',
    'HTTPS://EXAMPLE.COM/',
    ' https://example.com/ ',
    'https://bücher.de/',
    'https://例え.jp/',
    'https://my_bucket.example.com/',
    'https://example.com./',
    'http://8.8.8.8/',
    'http://[2606:4700::1111]/',
    'http://134744072/',
    // what the operator has opened, and nothing else
    'http://127.0.0.1:8080/',
    'http://wiki.corp/',
    'http://10.0.0.1.example.com/',
  ])
    t.equal(verdict(text), 'may be asked', text)
})

t.test('connects to the address that was checked', async (t) => {
  for (const address of [
    '1.1.1.1',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
  ])
    t.ok(isPublicAddress(address), address)
  for (const address of ['172.15.255.255', '172.32.0.0', '192.167.255.255', '192.169.0.0', '223.255.255.255'])
    t.ok(isPublicAddress(address), address)
  for (const address of ['2000::1', '2001:200::1', '2003::1', '2a00:1450:4001::1', '3ffe:ffff::1'])
    t.ok(isPublicAddress(address), address)
  for (const text of [
    '',
    'example.com',
    '1.2.3',
    '2a00::1%eth0',
    'fe80::1%eth0',
    '::ffff:1.1.1.1',
    '1.1.1.1:80',
  ])
    t.notOk(isPublicAddress(text), text)
})
