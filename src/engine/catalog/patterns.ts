import { METHODS } from './catalog.ts'

/** Explains a pattern of the catalog's schema, with what to write instead. */
export interface Form {
  readonly code: string
  readonly sentence: string
}

const FORMS: Readonly<Record<string, readonly [code: string, sentence: string]>> = {
  '^[1-9][0-9]{0,6}(ms|s|m|h|d)$': [
    'duration_invalid',
    'must be a duration: a whole number and ms, s, m, h or d, such as 30s, 5m, 24h or 7d',
  ],
  '^(0x[0-9a-fA-F]{40}|[1-9A-HJ-NP-Za-km-z]{32,44})$': [
    'address_invalid',
    'must be an address in quotes: "0x" and 40 hexadecimal digits, or one of Solana in base58',
  ],
  '^0x[0-9a-fA-F]{40}$': ['address_invalid', 'must be an address in quotes: "0x" and 40 hexadecimal digits'],
  '^\\./': ['file_path_invalid', 'a file is named from the catalog’s folder: ./folder/file.json'],
  '^/': ['path_invalid', 'a path starts with "/"'],
  '^(?:https?://|/)': [
    'upstream_invalid',
    'must be an address that starts with https:// or http://, or a path below defaults.upstream',
  ],
  '^(?:(?:GET|POST|PUT|PATCH|DELETE) )?/': [
    'path_invalid',
    'a route is a path that starts with "/", with GET, POST, PUT, PATCH or DELETE and a space before it when needed',
  ],
  '^[a-z]+/[a-z0-9][a-z0-9.+-]*$': [
    'media_type_invalid',
    'must be a media type in lower case without parameters, such as application/json',
  ],
  '^[1-9][0-9]{0,8} ?(B|KB|MB)$': ['size_invalid', 'must be a whole number and B, KB or MB, such as 5 MB'],
  '^[A-Za-z][A-Za-z0-9_.-]*$': [
    'name_invalid',
    'must be letters, digits, "_", "." and "-", with a letter first',
  ],
  '^[A-Za-z_][A-Za-z0-9_]*$': ['name_invalid', 'must be letters, digits and "_"'],
  '^https?://': ['upstream_invalid', 'must be an address that starts with https:// or http://'],
  '^https?://[^\\s<>"]+$': ['web_address_invalid', 'must be an address that starts with https:// or http://'],
  '^(https?:/)?/[^\\s<>"]+$': [
    'icon_invalid',
    'must be a path that starts with "/", or an address that starts with https:// or http://',
  ],
  '^[^\\s<>@]+@[^\\s<>@]+$': ['email_invalid', 'must be an e-mail address'],
  '^[A-Z][A-Z0-9_]*$': [
    'variable_invalid',
    'must be the name of an environment variable (A-Z, 0-9, _), never the secret itself',
  ],
  '^[a-z][a-z0-9_-]*\\.[a-z][a-z0-9_]*$': [
    'tool_name_invalid',
    'must be server.tool_name, for example game.app_intel',
  ],
  '^\\d{4}-\\d{2}-\\d{2}$': ['date_invalid', 'must be a date in quotes: "2026-11-20"'],
  '^[ -~]+$': [
    'text_not_ascii',
    'must be plain ASCII letters, digits and signs: wallets and listings show it as it is',
  ],
  "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$": ['header_invalid', 'must be the name of a header, such as X-Api-Key'],
  '^[a-z][a-z0-9-]*$': ['name_invalid', 'must be lower-case words joined by "-"'],
  '^[a-z][a-z0-9_-]*$': ['name_invalid', 'must be lower-case words joined by "-" or "_"'],
  '^[a-z][a-z0-9_]*$': ['name_invalid', 'must be lower-case words joined by "_"'],
  '^[A-Za-z]': [
    'network_unknown',
    'must be a network: a nickname such as base, or a CAIP-2 id such as eip155:8453',
  ],
}

export function formOf(pattern: string): Form | undefined {
  const [code, sentence] = FORMS[pattern] ?? []
  return code === undefined || sentence === undefined ? undefined : { code, sentence }
}

/** The most similar name that a pattern allows: `appId` → `app_id`, `robots.txt` → `/robots.txt`. */
export function properName(name: string, pattern: string): string {
  if (pattern === '^/') return `/${name}`
  if (pattern.endsWith(' )?/')) {
    const [, method = '', path = name] = /^([A-Za-z]+)\s+(.*)$/.exec(name) ?? []
    const known = METHODS.find((each) => each === method.toUpperCase())
    return `${known === undefined ? '' : `${known} `}${path.startsWith('/') ? path : `/${path}`}`
  }
  if (pattern.startsWith('^[A-Za-z_]')) return name.replace(/[^A-Za-z0-9_]+/g, '_').replace(/^(?=\d)/, '_')
  const join = pattern.includes('_') ? '_' : '-'
  const proper = name
    .replace(/([a-z0-9])([A-Z])/g, `$1${join}$2`)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, join)
    .replace(/^[^a-z]+|[_-]+$/g, '')
  return proper === '' ? 'name' : proper
}
