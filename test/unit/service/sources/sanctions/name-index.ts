import { readFileSync } from 'node:fs'
import t from 'tap'
import type { ListedEntry } from '../../../../../src/service/sources/sanctions/entry.ts'
import { readName } from '../../../../../src/service/sources/sanctions/name.ts'
import { readList, type Format } from '../../../../../src/service/sources/sanctions/list-reader.ts'
import { NameIndex } from '../../../../../src/service/sources/sanctions/name-index.ts'
import { listFile } from '../../../../support/service/sanctions-lists.ts'

interface Cases {
  readonly found: readonly (readonly [name: string, uid: string])[]
  readonly not_found: readonly string[]
  readonly alarms_known: readonly (readonly [name: string, uid: string])[]
}
const CASES = JSON.parse(
  readFileSync(new URL('../../../../fixtures/sanctions/cases.json', import.meta.url), 'utf8'),
) as Cases
const THRESHOLD = 0.85

async function registerOf(format: Format, main: string, aliases?: string): Promise<NameIndex> {
  const file = { main: listFile(main), aliases: aliases === undefined ? undefined : listFile(aliases) }
  const index = new NameIndex()
  for (const entry of (await readList(format, file, async () => {})).entries) index.add(entry)
  return index
}

const INDEXES = {
  'OFAC XML': await registerOf('ofac', 'ofac.xml'),
  'OFAC CSV': await registerOf('ofac', 'ofac.csv', 'ofac.alt.csv'),
  UN: await registerOf('un', 'un.xml'),
  UK: await registerOf('uk', 'uk.csv'),
  EU: await registerOf('eu', 'eu.xml'),
}

function listed(uid: string, kind: ListedEntry['kind'], ...names: ListedEntry['names']): ListedEntry {
  const none = { programmes: [], datesOfBirth: [], nationalities: [], identifiers: [] }
  return { uid, kind, names, ...none, title: null, remarks: null, url: null }
}

/** The number that an entry has in every list of the fixtures, as OFAC gives it. */
function numberOf({ uid }: ListedEntry): number {
  return Number(/(?:^EU\.|^TST|^TE[ei]\.|^)0*(\d+)/.exec(uid)?.[1])
}

t.test('finds a listed name in every usual spelling', async (t) => {
  for (const [list, index] of Object.entries(INDEXES)) {
    for (const [name, uid] of CASES.found) {
      // Ships are on neither list.
      if (uid === '4234' && (list === 'UN' || list === 'EU')) continue
      const [hit] = index.search(readName(name), THRESHOLD)
      t.equal(hit && numberOf(hit.entry), Number(uid), `${list}: ${name} ${hit?.score}`)
    }
  }
})

t.test('passes names that resemble a listed one in part', async (t) => {
  for (const [list, index] of Object.entries(INDEXES))
    for (const name of CASES.not_found)
      t.strictSame(index.search(readName(name), THRESHOLD), [], `${list}: ${name}`)
})

t.test('scores a name that is often mistaken for a listed one below an exact match', async (t) => {
  for (const [name] of CASES.alarms_known) {
    const [hit] = INDEXES['OFAC XML'].search(readName(name), THRESHOLD)
    t.ok(hit === undefined || hit.score < 0.95, `${name} ${hit?.score}`)
  }
})

t.test(
  'finds exactly the right person by initials, compound surnames and Korean and Chinese spellings',
  (t) => {
    const index = new NameIndex()
    for (const [uid, ...names] of [
      ['1', 'Ksenia Anatolievna PETROVA-SIDOROVA'],
      ['2', 'Igor Ivanovich SECHIN'],
      ['3', 'Vladimir Vladimirovich PUTIN'],
      ['4', 'Yo Jong KIM'],
      ['5', 'Pong Ju PAK'],
      ['6', 'Quanguo CHEN'],
      ['7', 'Carrie LAM CHENG YUET-NGOR', '林鄭月娥'],
      ['8', 'Xiuwen OUYANG'],
      ['9', 'Nicolas Ernesto MADURO GUERRA'],
    ] as const)
      index.add(
        listed(uid, 'individual', ...names.map((text) => ({ text, kind: 'primary', weak: false }) as const)),
      )
    const found = {
      'K. A. Petrova-Sidorova': '1',
      'Petrova-Sidorova K.A.': '1',
      'К. А. Петрова-Сидорова': '1',
      'Ksenia Petrova': '1',
      'Ksenia Sidorova': '1',
      'Petrova Sidorova Ksenia': '1',
      'I. Sechin': '2',
      'I.I. Sechin': '2',
      'V. V. Putin': '3',
      'В.В. Путин': '3',
      김여정: '4',
      박봉주: '5',
      陈全国: '6',
      陳全國: '6',
      林郑月娥: '7',
      'C. Lam Cheng Yuet-ngor': '7',
      欧阳修文: '8',
      'N. Maduro Guerra': '9',
      'Nicolas E. Maduro Guerra': '9',
    }
    for (const [name, uid] of Object.entries(found)) {
      const hits = index.search(readName(name), THRESHOLD)
      t.strictSame(
        hits.map(({ entry }) => entry.uid),
        [uid],
        name,
      )
    }
    for (const name of [
      'K. P. Petrova-Sidorova',
      'L. A. Petrova-Sidorova',
      'M. Sechin',
      'A. Putin',
      'X. V. Putin',
      'Igor S.',
      'Vladimir P.',
      'V. P. Smith',
      'K. Smith',
      'N. Moros',
      '김민준',
      '박지성',
      '陈伟',
      '王伟',
    ])
      t.strictSame(index.search(readName(name), THRESHOLD), [], name)
    for (const name of ['K. A. Petrova-Sidorova', 'V. V. Putin'])
      t.ok((index.search(readName(name), THRESHOLD)[0]?.score ?? 1) < 0.95, `${name} is never a strong match`)
    t.end()
  },
)

t.test('computes the score as described', async (t) => {
  const index = new NameIndex()
  const entry = (...terms: Parameters<typeof listed>): void => index.add(listed(...terms))
  entry('1', 'individual', { text: 'Berta QUANDTVOGEL', kind: 'primary', weak: false })
  entry('2', 'individual', { text: 'OZZY', kind: 'alias', weak: true })
  entry('3', 'entity', { text: 'ZYXWAR SHIPPING COMPANY', kind: 'primary', weak: false })
  const score = (name: string) => index.search(readName(name), 0)[0]?.score
  const near = (name: string, expected: number) =>
    t.ok(Math.abs((score(name) ?? 0) - expected) < 0.0005, `${name}: ${score(name)}, not ${expected}`)
  near('quandtvogel BERTA', 1)
  near('Ozzy', 0.97)
  // One word of two: eleven of the sixteen letters that are listed.
  near('Quandtvogel', (1 - (0.2 * 5) / 16) * 0.85)
  near('Quandtvogel Xx', ((2 * 11) / (11 + 2 + 11)) * (1 - (0.2 * 5) / 16) * 0.85 * 0.9)
  // The legal form does not count at all, and of the generic word 30 %.
  near('Zyxwar', 1 - (0.2 * 0.3 * 8) / (0.3 * 8 + 6))
  near('Shipping company', (1 - (0.2 * 6) / 14) * 0.8)
  t.strictSame(
    index.search(readName('Berta Quandtvogel'), 0.9)[0]?.pairs.map(({ likeness }) => likeness),
    [1, 1],
  )
})

t.test('compares hostile names like any other, or refuses them', async (t) => {
  const index = INDEXES['OFAC XML']
  const same = '\u202eNicolas\u200f\u0000 \u2066MADURO\u0007\u200b MOROS\u202c'
  t.equal(index.search(readName(same), THRESHOLD)[0]?.entry.uid, '22790', 'direction marks hide nobody')
  t.equal(
    index.search(readName('Ｎｉｃｏｌａｓ Ｍａｄｕｒｏ Ｍｏｒｏｓ'), THRESHOLD)[0]?.score,
    1,
    'nor do wide letters',
  )
  for (const name of [
    'x'.repeat(200),
    'a '.repeat(100),
    'mohammed '.repeat(22),
    '\u202e'.repeat(200),
    '\ud800'.repeat(200),
    'ﷺ'.repeat(200),
    '💥'.repeat(100),
    "'; DROP TABLE--",
    '__proto__ constructor',
    'hasOwnProperty toString',
    '%00%0a',
    '-'.repeat(200),
    'Z̴̢̛͔a̷l̸g̵o̶'.repeat(12),
  ])
    t.strictSame(index.search(readName(name), THRESHOLD), [], JSON.stringify(name).slice(0, 30))
})

t.test('cuts a name of excessive length', async (t) => {
  const { person } = readName(Array.from({ length: 60 }, (_, place) => `w${place}`).join(' '))
  t.equal(person.length, 12)
  t.ok(readName('y'.repeat(200)).person.every((word) => word.length <= 40))
})

t.test(
  'finds titles, other scripts and German spellings, and takes nobody for sure by common names',
  async (t) => {
    const index = new NameIndex()
    const add = (uid: string, text: string): void =>
      index.add(listed(uid, 'individual', { text, kind: 'primary', weak: false }))
    add('khamenei', 'Ayatollah Ali Hosseini KHAMENEI')
    add('kim', 'KIM Jong Un')
    add('prigozhin', 'Yevgeniy Viktorovich PRIGOZHIN')
    add('sechin', 'Igor Ivanovich SECHIN')
    add('qadhafi', 'Muammar QADHAFI')
    for (const [asked, uid] of [
      ['علی خامنه‌ای', 'khamenei'],
      ['金正恩', 'kim'],
      ['Jewgeni Prigoschin', 'prigozhin'],
      ['Igor Setschin', 'sechin'],
      ['Moammar Khadafy', 'qadhafi'],
    ] as const)
      t.equal(index.search(readName(asked), 0.85)[0]?.entry.uid, uid, asked)
    t.same(index.search(readName('Ali Hosseini'), 0.85), [], 'two common names and no other')
    add('common', 'Ali HOSSEINI')
    t.ok((index.search(readName('Ali Hosseini'), 0.85)[0]?.score ?? 1) < 0.9, 'a reason to look, no more')
  },
)
