import t from 'tap'
import { isPublicName, registrableDomain } from '../../../../src/service/sources/public-suffix.ts'

t.test('tells sites under one public suffix apart', async (t) => {
  const table: readonly (readonly [string, string | undefined])[] = [
    // from the test data of publicsuffix.org
    ['com', undefined],
    ['example.com', 'example.com'],
    ['b.example.com', 'example.com'],
    ['a.b.example.com', 'example.com'],
    ['uk', undefined],
    ['co.uk', undefined],
    ['b.example.co.uk', 'example.co.uk'],
    ['test.jp', 'test.jp'],
    ['kyoto.jp', undefined],
    ['ide.kyoto.jp', undefined],
    ['a.b.ide.kyoto.jp', 'b.ide.kyoto.jp'],
    ['c.kobe.jp', undefined],
    ['a.b.c.kobe.jp', 'b.c.kobe.jp'],
    ['city.kobe.jp', 'city.kobe.jp'],
    ['www.city.kobe.jp', 'city.kobe.jp'],
    ['ck', undefined],
    ['test.ck', undefined],
    ['a.b.test.ck', 'b.test.ck'],
    ['www.ck', 'www.ck'],
    ['www.www.ck', 'www.ck'],
    ['xn--85x722f.com.cn', 'xn--85x722f.com.cn'],
    ['www.xn--85x722f.xn--55qx5d.cn', 'xn--85x722f.xn--55qx5d.cn'],
    ['shop.example.github.io', 'github.io'],
    ['example.nosuchtop', undefined],
    ['', undefined],
  ]
  for (const [host, expected] of table) t.equal(registrableDomain(host), expected, host)
})

t.test('tells internal names from public ones', async (t) => {
  for (const name of ['example.com', 'a.b.co.uk', 'xn--bcher-kva.de', '_dmarc.example.com'])
    t.ok(isPublicName(name), name)
  for (const name of [
    '',
    '.',
    'com',
    'localhost',
    'a.local',
    'a.internal',
    'a.test',
    'a.onion',
    'a.arpa',
    'a..com',
    '.com',
  ])
    t.notOk(isPublicName(name), name)
})
