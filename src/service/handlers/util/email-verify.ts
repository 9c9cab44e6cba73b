import { createRequire } from 'node:module'
import { isJsonObject, type JsonObject, type Source, type Warning } from 'ratecard/handler'
import { FREE_PROVIDERS, MAIL_HOSTS, ROLES } from '../../data/mail-domains.ts'
import type { MailServers, MailSetup } from '../../sources/mail-servers.ts'
import { registrableDomain } from '../../sources/public-suffix.ts'
import type { HandlerWithPreview } from '../catalog.ts'
import { readAddress, type Address } from './email-verify/email-address.ts'
import { suggestDomain } from './email-verify/typing-slip.ts'
import { judge } from './email-verify/verdict.ts'

export interface EmailVerifySources {
  readonly mailServers: MailServers
  /** Source of the records, as named in answers. */
  readonly dns: Source
}

const REPORTED: Source = {
  name: 'ivolo/disposable-email-domains',
  url: 'https://github.com/ivolo/disposable-email-domains',
  licence: 'MIT',
}
const LIST: Source = {
  name: 'disposable-email-domains',
  url: 'https://github.com/disposable-email-domains/disposable-email-domains',
  licence: 'CC0-1.0',
}

/**
 * Whether mail to an address can arrive, as far as its text, DNS and lists tell. No mail server is ever contacted, so
 * nothing is said of the mailbox. A faulty address is an answer; name servers that do not answer are a failure.
 */
export function emailVerify({
  mailServers,
  dns,
}: EmailVerifySources): HandlerWithPreview<'util/email-verify'> {
  return {
    run: async ({ email }, context) => {
      const address = readAddress(email)
      if (typeof address === 'string') {
        const syntax = { valid: false, mistake: address }
        return {
          source: [{ name: 'computed' }],
          body: { email, ...judge({ invalid_syntax: true }), ...NOTHING_KNOWN, syntax },
        }
      }
      if (address.kind !== 'public') {
        const isLiteral = address.kind === 'literal'
        const suggestion = isLiteral ? null : suggestionFor(address)
        const verdict = judge({
          address_literal: isLiteral,
          domain_not_public: !isLiteral,
          possible_typo: suggestion !== null,
        })
        return {
          source: [{ name: 'computed' }],
          body: { email, ...verdict, ...NOTHING_KNOWN, ...textOf(address), suggestion },
        }
      }
      const { setup, at } = await mailServers.find(address.domain, context)
      const hosts = [address.domain, ...setup.servers.map(({ exchange }) => exchange)]
      return {
        source: [dns, LIST, REPORTED],
        warnings: warningsOf(setup),
        fetchedAt: at,
        body: { email, ...bodyOf(address, setup, await disposabilityOf(hosts)) },
      }
    },
    preview: ({ status, syntax, has_mx: hasServers, disposable }) => ({
      status: status ?? null,
      syntax: { valid: isJsonObject(syntax) ? (syntax['valid'] ?? null) : null },
      has_mx: hasServers ?? null,
      disposable: disposable ?? null,
    }),
  }
}

const NOTHING_KNOWN = {
  normalized: null,
  domain: null,
  has_mx: false,
  disposable: false,
  disposable_reported: false,
  role_account: false,
  free_provider: false,
  tagged: false,
  suggestion: null,
  smtp_checked: false,
  mailbox: 'unknown',
} as const

function bodyOf(address: Address, setup: MailSetup, { disposable, reported }: Disposability): JsonObject {
  const { quoted, international, domain } = address
  const { exists, servers, implicit, refuses, reachable, spf, dmarc } = setup
  const suggestion = suggestionFor(address)
  const takesMail = servers.length > 0 || implicit
  const text = textOf(address)
  return {
    ...judge({
      domain_not_found: !exists,
      null_mx: refuses,
      no_mail_server: exists && !refuses && !takesMail,
      mail_servers_not_public: takesMail && reachable === false,
      disposable,
      disposable_reported: reported && !disposable,
      possible_typo: suggestion !== null,
      implicit_mx: implicit,
      role_account: text.role_account,
      quoted_local_part: quoted,
      needs_smtputf8: international,
      mail_servers_unknown: takesMail && reachable === null,
      no_dmarc: takesMail && dmarc === null && !setup.unknown.includes('dmarc'),
    }),
    ...text,
    domain: {
      name: domain,
      registrable: registrableDomain(domain) ?? null,
      exists,
      mx: servers.map(({ exchange, priority }) => ({ exchange, priority })),
      implicit_mx: implicit,
      null_mx: refuses,
      spf,
      dmarc,
      provider: providerOf(servers),
    },
    has_mx: servers.length > 0,
    disposable,
    disposable_reported: reported,
    free_provider: FREE_PROVIDERS.has(domain),
    suggestion,
    smtp_checked: false,
    mailbox: 'unknown',
  }
}

function suggestionFor({ local, domain }: Address): string | null {
  const meant = suggestDomain(domain)
  return meant === undefined ? null : `${local}@${meant}`
}

/** What the address alone tells. */
function textOf({ local, quoted, international, domain }: Address) {
  const [base = '', ...tags] = quoted ? [local] : local.toLowerCase().split('+')
  // No provider of note tells upper from lower case; Google does not see dots and tags either.
  const isGoogle = domain === 'gmail.com' || domain === 'googlemail.com'
  const mailbox = quoted ? local : isGoogle ? base.replaceAll('.', '') : local.toLowerCase()
  return {
    normalized: `${mailbox || base}@${domain}`,
    syntax: { valid: true, mistake: null, quoted, international },
    role_account: ROLES.has(base),
    tagged: base !== '' && tags.length > 0,
  }
}

function providerOf(servers: MailSetup['servers']): string | null {
  const exchange = servers[0]?.exchange.toLowerCase() ?? ''
  return MAIL_HOSTS.find(([ending]) => exchange === ending || exchange.endsWith(`.${ending}`))?.[1] ?? null
}

interface Disposability {
  /** On the list that its keepers check. */
  readonly disposable: boolean
  /** On a list fifty times as long, to which anybody may report: some of it is wrong. */
  readonly reported: boolean
}

/** Disposable domains give out subdomains, and their servers serve other names. */
async function disposabilityOf(hosts: readonly string[]): Promise<Disposability> {
  const names = hosts.flatMap((host) => {
    const labels = host.toLowerCase().split('.')
    return labels.slice(0, -1).map((_, place) => labels.slice(place).join('.'))
  })
  const { kept, reported } = await throwAway()
  return {
    disposable: names.some((name) => kept.has(name)),
    reported: names.some((name) => reported.has(name) && !FREE_PROVIDERS.has(name)),
  }
}

interface Lists {
  readonly kept: ReadonlySet<string>
  readonly reported: ReadonlySet<string>
}

let known: Promise<Lists> | undefined

/** Loaded by the first question, not at boot. */
function throwAway(): Promise<Lists> {
  known ??= import('disposable-email-domains-js').then(({ disposableEmailBlocklistSet }) => ({
    kept: disposableEmailBlocklistSet(),
    reported: new Set(readReported()),
  }))
  return known
}

function readReported(): readonly string[] {
  const list: readonly string[] = createRequire(import.meta.url)('disposable-email-domains')
  return list
}

function warningsOf({ unknown }: MailSetup): readonly Warning[] {
  if (unknown.length === 0) return []
  return [
    { code: 'dns_unknown', source: 'dns', message: `no name server answered for: ${unknown.join(', ')}` },
  ]
}
