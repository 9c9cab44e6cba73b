/** Types of records by number (RFC 1035, 3596, 8659). */
export const TYPES = { a: 1, ns: 2, mx: 15, txt: 16, aaaa: 28, caa: 257 } as const

/** Data of the records of one name, ready for the wire. */
export type Zone = Readonly<Partial<Record<keyof typeof TYPES, readonly Buffer[]>>>

const HOST: Zone = {
  a: [Buffer.from([93, 184, 215, 14])],
  aaaa: [Buffer.from('26062800021fcb07682080daaf6b8b2c', 'hex')],
}
const DOMAIN: Zone = {
  ...HOST,
  ns: [wireName('a.iana-servers.net'), wireName('b.iana-servers.net')],
  mx: [mailServer(10, 'mail.example.com')],
  txt: [wireText('v=spf1 -all'), wireText('sandbox=1')],
  caa: [Buffer.concat([Buffer.from([0, 5]), Buffer.from('issueca.example.net')])],
}
const REJECT: Zone = { txt: [wireText('v=DMARC1; p=reject')] }

/** Ways in which mail servers are set up, well and badly. */
const MAIL: Readonly<Record<string, Zone>> = {
  'gmail.com': { ...HOST, mx: [mailServer(5, 'gmail-smtp-in.l.google.com')], txt: [wireText('v=spf1 ~all')] },
  '_dmarc.gmail.com': { txt: [wireText('v=DMARC1; p=none; sp=quarantine')] },
  'gmail-smtp-in.l.google.com': HOST,
  'gamil.com': { ...HOST, mx: [mailServer(0, 'mail.example.com')] },
  'mailinator.com': { ...HOST, mx: [mailServer(1, 'mail.mailinator.com')] },
  'mail.mailinator.com': HOST,
  'lent.example.com': { mx: [mailServer(1, 'mail.mailinator.com')] },
  'refuses.example.com': { ...HOST, mx: [mailServer(0, '')] },
  'empty.example.com': { txt: [wireText('nothing else')] },
  'inside.example.com': { mx: [mailServer(1, 'mail.inside.example.com')] },
  'mail.inside.example.com': { a: [Buffer.from([10, 0, 0, 25])] },
  'lost.example.com': { ...HOST, mx: [mailServer(1, 'gone.example.com')] },
  'half.example.com': { mx: [mailServer(20, 'mail.example.com'), mailServer(10, 'gone.example.com')] },
}

/** Name servers that answer with an error, and such that do not answer. */
const FAULTS: Readonly<Record<string, 'failing' | 'silent'>> = {
  'failing.example.com': 'failing',
  'silent.example.com': 'silent',
  '_dmarc.half.example.com': 'failing',
}

/** The names that IANA keeps for examples, and some that take mail; every other name does not exist here. */
export function zoneOf(name: string): Zone | 'failing' | 'silent' | undefined {
  if (/^example\.(?:com|net|org)$/.test(name)) return DOMAIN
  if (/^_dmarc\.example\.(?:com|net|org)$/.test(name)) return REJECT
  if (/^(?:www|rdap|mail|news|shop|old|doi|agency)\.example\.(?:com|net|org)$/.test(name)) return HOST
  return FAULTS[name] ?? MAIL[name]
}

function mailServer(priority: number, name: string): Buffer {
  return Buffer.concat([Buffer.from([0, priority]), wireName(name)])
}

/** Nothing for the root. */
function wireName(name: string): Buffer {
  const labels = name === '' ? [] : name.split('.')
  return Buffer.concat([...labels.map(wireText), Buffer.from([0])])
}

function wireText(text: string): Buffer {
  return Buffer.concat([Buffer.from([text.length]), Buffer.from(text)])
}
