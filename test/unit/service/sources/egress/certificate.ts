import t from 'tap'
import {
  EXPIRED_CERTIFICATE,
  SITE_CERTIFICATE,
} from '../../../../../src/service/stand-ins/web/certificates.ts'
import { showCertificate } from '../../../../../src/service/sources/egress/certificate.ts'
import { openInternet, type InternetOptions } from '../../../../support/service/hostile-site.ts'

const NEVER = new AbortController().signal

t.test('judges every certificate, and reports invalid ones', async (t) => {
  const cases: readonly (readonly [string, InternetOptions, string | null])[] = [
    ['www.example.com', {}, null],
    ['www.site.com', {}, 'ERR_TLS_CERT_ALTNAME_INVALID'],
    ['www.example.com', { certificate: EXPIRED_CERTIFICATE }, 'CERT_HAS_EXPIRED'],
    ['www.example.com', { trusted: SITE_CERTIFICATE }, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
  ]
  for (const [host, options, error] of cases) {
    const { securePort, policy, wire } = await openInternet(t, options)
    const shown = await showCertificate(new URL(`https://${host}:${securePort}/`), policy, wire, NEVER)
    t.match(
      shown,
      { valid: error === null, error, subject: 'example.com', names: { length: 6 } },
      `${host} ${error}`,
    )
  }
})

t.test('limits where a handshake goes and how long it takes', async (t) => {
  const { port, securePort, rawPort, inside, policy, wire } = await openInternet(t, {
    names: { 'inside.com': [['127.0.0.2']] },
    raw: (socket) => socket.write('SSH-2.0\r\n'),
  })
  const look = (url: string) => showCertificate(new URL(url), policy, wire, AbortSignal.timeout(500))
  t.equal(await look(`https://inside.com:${securePort}/`), undefined)
  t.equal(await look(`https://127.0.0.2:${securePort}/`), undefined)
  t.equal(inside(), 0)
  t.equal(await look(`https://plain.com:${port}/`), undefined)
  t.equal(await look(`https://raw.com:${rawPort}/`), undefined)
})
