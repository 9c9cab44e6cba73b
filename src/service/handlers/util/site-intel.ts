import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import { Failure, InvalidParameter, type Json, type JsonObject, type Warning } from 'ratecard/handler'
import type { Head } from '../../html/head.ts'
import type { Dns } from '../../sources/dns.ts'
import type { Egress } from '../../sources/egress.ts'
import type { Certificate } from '../../sources/egress/certificate.ts'
import { answerOf, type Outcome, type Reply } from '../../sources/egress/outcome.ts'
import { isPublicName, registrableDomain } from '../../sources/public-suffix.ts'
import type { Rdap, Registered } from '../../sources/rdap.ts'
import { entryBeside, ThreadPool } from '../../threads/thread-pool.ts'
import { LIMIT_EXCEEDED } from '../../threads/thread.ts'
import type { HandlerWithPreview } from '../catalog.ts'
import { readRecords } from './site-intel/records.ts'
import { judgeSecurity } from './site-intel/security.ts'
import { recognise } from './site-intel/technologies.ts'
import type { FrontPageTask } from './site-intel/worker.ts'

export interface SiteIntelSources {
  readonly egress: Egress
  readonly dns: Dns
  readonly rdap: Rdap
}

const FRONT_PAGE = { bytes: 512 * 1024, beyond: 'cut' } as const
const FILE = { bytes: 64 * 1024, beyond: 'cut' } as const
const FILES = {
  robots_txt: '/robots.txt',
  sitemap: '/sitemap.xml',
  security_txt: '/.well-known/security.txt',
  llms_txt: '/llms.txt',
} as const
const DAY_MS = 86_400_000
const LIMITED_SECONDS = 10

const pool = new ThreadPool<FrontPageTask, Head>(entryBeside(import.meta.url, './site-intel/worker'), {
  threads: 1,
  milliseconds: 2000,
  megabytes: 128,
})

/** The operator, age and care of a site. A part that cannot be read is null and has a warning. */
export function siteIntel({ egress, dns, rdap }: SiteIntelSources): HandlerWithPreview<'util/site-intel'> {
  return {
    run: async ({ target }, context) => {
      const { signal, now } = context
      const host = hostIn(target)
      const domain = registrableDomain(host) ?? host
      const [records, registered, certificate, front] = await Promise.all([
        readRecords(dns, host, domain),
        rdap.find(domain, context),
        egress.certificate(host, signal),
        visit(egress, host, signal),
      ])
      // Our own name is no site to look at through ourselves.
      if (front.kind === 'refused' && front.refusal === 'own') answerOf(front, 'target')
      if (records.resolves === null && registered.kind !== 'known' && front.kind !== 'answered') {
        if (registered.kind === 'limited')
          throw new Failure('source_limited', sentenceOf(registered), { retryAfter: LIMITED_SECONDS })
        throw new Failure('source_error', 'Neither name servers, registry nor site answered')
      }
      const reply = front.kind === 'answered' ? front.reply : undefined
      const files = reply === undefined ? {} : await filesOf(egress, reply.url.origin, signal)
      const page = reply === undefined ? '' : Buffer.from(reply.body).toString('latin1')
      const head = reply === undefined ? undefined : await headOf(reply, signal)
      return {
        source: [
          { name: 'Public DNS' },
          { name: 'Registration data (RDAP)' },
          { name: 'The site itself', url: reply?.url.href ?? `https://${host}/` },
        ],
        warnings: warningsOf(records.unknown, registered, front),
        body: {
          target,
          host,
          registrable_domain: domain,
          resolves: records.resolves,
          dns: records.body,
          registration: registrationOf(registered, now()),
          tls: certificate === undefined ? null : certificateOf(certificate, now()),
          http: reply === undefined ? null : httpOf(reply),
          page: head === undefined ? null : pageOf(head),
          files: { robots_txt: null, sitemap: null, security_txt: null, llms_txt: null, ...files },
          technologies: reply === undefined ? null : recognise(reply, page, head?.generator ?? null),
          security: judgeSecurity({ certificate, reply, dmarc: records.dmarc, hasCaa: records.hasCaa }),
        },
      }
    },
    preview: ({ target, host, resolves, tls, http, page }) => ({
      target: target ?? null,
      host: host ?? null,
      resolves: resolves ?? null,
      tls: pick(tls, ['valid', 'days_remaining']),
      http: pick(http, ['status']),
      page: pick(page, ['title']),
    }),
  }
}

/** The host a caller means: a name, a name with a path, or an address with http or https. */
function hostIn(target: string): string {
  const text = target.trim()
  const whole = /^[a-z][a-z\d+.-]*:\/\//i.test(text) ? text : `https://${text}`
  const url = URL.canParse(whole) ? new URL(whole) : undefined
  const plain = url !== undefined && /^https?:$/.test(url.protocol) && url.username + url.password === ''
  const host = plain ? domainToASCII(url.hostname).replace(/\.$/, '') : ''
  if (/[\p{Cc}\s]/u.test(text) || isIP(host) !== 0 || !isPublicName(host))
    throw new InvalidParameter('target', 'target must be a public host name or URL')
  return host
}

/** Over TLS if the site has it, and else without. */
async function visit(egress: Egress, host: string, signal: AbortSignal): Promise<Outcome> {
  const request = { accept: 'text/html, */*;q=0.5', measure: FRONT_PAGE, robots: 'ignore' } as const
  const secure = await egress.get(`https://${host}/`, request, signal)
  if (secure.kind !== 'failed' || !['unreachable', 'certificate', 'broken'].includes(secure.mishap))
    return secure
  return egress.get(`http://${host}/`, request, signal)
}

async function filesOf(egress: Egress, origin: string, signal: AbortSignal): Promise<JsonObject> {
  const request = { accept: 'text/plain, */*;q=0.5', measure: FILE, robots: 'ignore' } as const
  const found = await Promise.all(
    Object.entries(FILES).map(async ([name, path]): Promise<[string, Json]> => {
      const outcome = await egress.get(origin + path, request, signal)
      if (outcome.kind !== 'answered') return [name, null]
      const { status, header, body } = outcome.reply
      // Sites that have one page for everything answer with that.
      const isPage =
        /html/i.test(header('content-type') ?? '') ||
        /^\s*<(?:!doctype )?html/i.test(Buffer.from(body.subarray(0, 200)).toString('latin1'))
      return [name, status === 200 && body.byteLength > 0 && !isPage]
    }),
  )
  return Object.fromEntries(found)
}

async function headOf(reply: Reply, signal: AbortSignal): Promise<Head | undefined> {
  const contentType = reply.header('content-type') ?? ''
  if (!/^\s*(?:text\/html|application\/xhtml\+xml|$)/i.test(contentType)) return undefined
  const head = await pool.perform({ bytes: reply.body, contentType }, signal)
  return head === LIMIT_EXCEEDED ? undefined : head
}

function registrationOf(registered: Registered, now: Date): JsonObject | null {
  if (registered.kind !== 'known') return null
  const { status, ...registration } = registered.registration
  const created = registration.created_at === null ? undefined : Date.parse(registration.created_at)
  const age = created === undefined ? null : Math.floor((now.getTime() - created) / DAY_MS)
  return { ...registration, age_days: age, status: [...status], read_at: registered.at.toISOString() }
}

function certificateOf(certificate: Certificate, now: Date): JsonObject {
  const { valid, error, issuer, subject, validFrom, validTo, names, protocol } = certificate
  const left = validTo === null ? null : Math.floor((Date.parse(validTo) - now.getTime()) / DAY_MS)
  return {
    valid,
    error,
    issuer,
    subject,
    protocol,
    valid_from: validFrom,
    valid_to: validTo,
    days_remaining: left,
    names: names.slice(0, 20),
    names_count: names.length,
  }
}

function httpOf({ url, status, header, redirects }: Reply): JsonObject {
  return {
    status,
    final_url: url.href,
    redirects: redirects.map(({ status: code, to }) => ({ status: code, to })),
    server: header('server')?.slice(0, 200) ?? null,
    content_type: header('content-type')?.slice(0, 200) ?? null,
  }
}

function pageOf({ title, description, lang, canonical }: Head): JsonObject {
  return { title, description, lang, canonical }
}

function warningsOf(unknown: readonly string[], registered: Registered, front: Outcome): readonly Warning[] {
  const warnings: Warning[] = []
  if (unknown.length > 0)
    warnings.push({
      code: 'dns_unknown',
      source: 'dns',
      message: `no name server answered for: ${unknown.join(', ')}`,
    })
  if (registered.kind === 'unsupported')
    warnings.push({
      code: 'rdap_not_supported',
      source: 'rdap',
      message: 'the registry of this domain has no RDAP',
    })
  if (registered.kind === 'limited')
    warnings.push({
      code: 'source_limited',
      source: 'rdap',
      message: `${sentenceOf(registered)}: registration was not read`,
    })
  if (registered.kind === 'unknown')
    warnings.push({ code: 'upstream_unavailable', source: 'rdap', message: 'the registry did not answer' })
  if (front.kind !== 'answered') {
    const why = front.kind === 'failed' ? front.mishap : front.refusal
    warnings.push({
      code: 'upstream_unavailable',
      source: 'public-web',
      message: `the front page could not be read: ${why}`,
    })
  }
  return warnings
}

function sentenceOf({ by }: Extract<Registered, { kind: 'limited' }>): string {
  return by === 'us'
    ? 'The registry of this domain is asked as often as we may'
    : 'The registry of this domain limits how often it may be asked'
}

function pick(value: Json | undefined, names: readonly string[]): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  return Object.fromEntries(Object.entries(value).filter(([name]) => names.includes(name)))
}
