import { readFileSync } from 'node:fs'
import t from 'tap'
import { checkCardBin } from '../../../../../src/service/handlers/util/finid/card.ts'
import { checkRouting } from '../../../../../src/service/handlers/util/finid/routing.ts'
import { InvalidParameter, isJsonObject } from '../../../../../src/engine/handler.ts'
import type { JsonObject } from '../../../../../src/engine/handler.ts'
import type { Parameters } from '../../../../../src/service/handlers/catalog.ts'
import { finid } from '../../../../../src/service/handlers/util/finid.ts'
import { fixedContext } from '../../../../support/handler-context.ts'
import { checkedAnswer } from '../../../../support/service/answer-shape.ts'

type Given = Partial<Parameters['util/finid']>

async function bodyOf(given: Given): Promise<JsonObject> {
  const answer = await finid.run(
    { iban: '', card_bin: '', vat: '', routing: '', ...given },
    fixedContext({ now: () => new Date(0) }),
  )
  return checkedAnswer('util/finid', answer).body
}

async function answerOf(name: keyof Given, input: string): Promise<JsonObject> {
  const answer = (await bodyOf({ [name]: input }))[name]
  if (!isJsonObject(answer)) throw new Error(`${name} was not answered`)
  return answer
}

t.test('takes a valid IBAN apart', async (t) => {
  t.same(await answerOf('iban', 'DE89 3704 0044 0532 0130 00'), {
    valid: true,
    country: 'DE',
    check_digits: '89',
    bban: '370400440532013000',
    bank_code: '37040044',
    branch_code: null,
    account_number_masked: '******3000',
    sepa: true,
    formatted: 'DE89 3704 0044 0532 0130 00',
    errors: [],
  })
  t.match(await answerOf('iban', 'gb82west12345698765432'), {
    valid: true,
    bank_code: 'WEST',
    branch_code: '123456',
    account_number_masked: '****5432',
  })
  for (const iban of ['GB29NWBK60161331926819', 'FR1420041010050500013M02606', 'NL91ABNA0417164300']) {
    t.match(
      await answerOf('iban', iban),
      { valid: true, country: iban.slice(0, 2), sepa: true, errors: [] },
      iban,
    )
  }
  t.match(await answerOf('iban', 'BR1800360305000010009795493C1'), { valid: true, sepa: false })
})

t.test('answers an invalid IBAN with what is wrong', async (t) => {
  t.match(await answerOf('iban', 'DE89370400440532013001'), {
    valid: false,
    country: 'DE',
    bban: null,
    formatted: null,
    errors: ['wrong_checksum'],
  })
  t.match(await answerOf('iban', 'DE8937040044'), { valid: false, errors: ['wrong_length', 'wrong_format'] })
  t.match(await answerOf('iban', ' '), { valid: false, errors: ['empty'] })
  for (const input of ['XX00', 'D', '!!', 'toString', '__proto__', 'A'.repeat(50), '0'.repeat(50)]) {
    const answer = await answerOf('iban', input)
    t.match(
      answer,
      { valid: false, country: null, sepa: null, errors: ['unknown_country'] },
      JSON.stringify(input),
    )
  }
})

t.test('names the scheme of leading digits', async (t) => {
  const schemes: Readonly<Record<string, readonly string[]>> = {
    visa: ['4111', '4242-42', '4000 0000'],
    mastercard: ['5100', '5599', '2221', '2720'],
    amex: ['3400', '3782'],
    discover: ['6011', '6440', '6499', '6521'],
    diners: ['3000', '3059', '3095', '3600', '3800', '3999'],
    jcb: ['3528', '3589', '353011'],
    unionpay: ['6200', '622126', '8100', '8171'],
    maestro: ['5018', '5020', '5038', '5893', '6304', '6759', '6761', '6763'],
    mir: ['2200', '2204'],
    troy: ['9792'],
    elo: ['636368', '438935', '504175', '451416', '506700', '509123', '650031'],
    rupay: ['6045', '8200', '8172', '5085'],
    uatp: ['1000'],
  }
  for (const [brand, bins] of Object.entries(schemes)) {
    for (const bin of bins)
      t.match(await answerOf('card_bin', bin), { valid: true, brand, issuer: null }, bin)
  }
  for (const bin of ['0000', '2205', '2220', '2721', '7777', '5700']) {
    t.match(await answerOf('card_bin', bin), { valid: false, brand: null, errors: ['unknown_scheme'] }, bin)
  }
  t.same(await answerOf('card_bin', '37828224'), {
    valid: true,
    brand: 'amex',
    scheme_name: 'American Express',
    possible_brands: ['amex'],
    pan_lengths: [15],
    cvv_length: 4,
    luhn_required: true,
    iin_length: 8,
    issuer: null,
    errors: [],
  })
})

t.test('says so when four digits begin a range of another scheme', async (t) => {
  t.match(await answerOf('card_bin', '4312'), {
    brand: 'visa',
    possible_brands: ['visa', 'elo'],
    iin_length: null,
  })
  t.match(await answerOf('card_bin', '431274'), {
    brand: 'elo',
    possible_brands: ['elo', 'visa'],
    iin_length: 6,
  })
})

t.test('names both schemes of a shared range, the issuing one first', async (t) => {
  for (const bin of ['622126', '62292599']) {
    t.match(
      await answerOf('card_bin', bin),
      { brand: 'unionpay', possible_brands: ['unionpay', 'discover'] },
      bin,
    )
  }
  for (const bin of ['622125', '622926']) {
    t.same((await answerOf('card_bin', bin))['possible_brands'], ['unionpay'], bin)
  }
  t.match(await answerOf('card_bin', '353011'), { brand: 'jcb', possible_brands: ['jcb', 'rupay'] })
})

t.test('refuses a card number, and keeps it out of the message', async (t) => {
  const sentence = 'card_bin must be the first 4 to 8 digits, never a full card number'
  for (const input of [
    '4111111111111111',
    '4111 1111 1111 1111',
    '411111111',
    '411',
    '4x11',
    '４１１１',
    ' ',
  ]) {
    const failure = await answerOf('card_bin', input).catch((error: unknown) => error)
    if (!(failure instanceof InvalidParameter)) return t.fail(`${input} was not refused`)
    t.equal(failure.parameter, 'card_bin')
    t.equal(failure.sentence, sentence)
    t.same(failure.ctx, {})
  }
})

t.test('checks VAT numbers by the rules of their country', async (t) => {
  const countries: Readonly<Record<string, string>> = {
    GB980780684: 'GB',
    ATU13585627: 'AT',
    IE6388047V: 'IE',
    NL004495445B01: 'NL',
    PL8567346215: 'PL',
    ESA28015865: 'ES',
    IT00743110157: 'IT',
    FR40303265045: 'FR',
    BE0403019261: 'BE',
    'CHE-116.281.710 MWST': 'CH',
    EL094259216: 'GR',
    SE556043606401: 'SE',
    DE136695976: 'DE',
    EU372000001: 'EU',
  }
  for (const [vat, country] of Object.entries(countries)) {
    t.match(
      await answerOf('vat', vat),
      { valid: true, country, format_valid: true, registered: null, errors: [] },
      vat,
    )
  }
  t.match(await answerOf('vat', 'XI 980 780 684'), { valid: true, country: 'GB', number: 'XI980780684' })
})

t.test('says at which check an invalid VAT number failed', async (t) => {
  t.match(await answerOf('vat', 'DE123456789'), {
    valid: false,
    format_valid: true,
    errors: ['wrong_checksum'],
  })
  t.match(await answerOf('vat', 'DE1'), { valid: false, format_valid: false, errors: ['wrong_format'] })
  for (const input of ['US123456789', ' ', '__proto__', '9'.repeat(20)]) {
    t.match(
      await answerOf('vat', input),
      { valid: false, country: null, errors: ['unsupported_country'] },
      input,
    )
  }
})

t.test('checks US routing numbers by sum and prefix', async (t) => {
  const districts: Readonly<Record<string, string>> = {
    '021000021': 'New York',
    '011000015': 'Boston',
    '026009593': 'New York',
    '122105155': 'San Francisco',
  }
  for (const [routing, district] of Object.entries(districts)) {
    const details = { kind: 'bank', district }
    t.match(await answerOf('routing', routing), { valid: true, type: 'aba', country: 'US', details }, routing)
  }
  // sums are right, prefixes 13 and 99 are not in use
  for (const routing of ['123456789', '021000022', '130000006', '990000007']) {
    t.match(
      await answerOf('routing', routing),
      { valid: false, type: 'aba', errors: ['invalid_aba'] },
      routing,
    )
  }
  const kinds = { '000000518': 'us_government', '211000013': 'thrift', '611000019': 'electronic' }
  for (const [routing, kind] of Object.entries(kinds)) {
    t.match(await answerOf('routing', routing), { type: 'aba', details: { kind } }, routing)
  }
})

t.test('recognizes routing codes of other countries', async (t) => {
  const types: Readonly<Record<string, readonly string[]>> = {
    '20-00-00': ['uk_sort_code'],
    '20 00 00': ['uk_sort_code'],
    '062-000': ['au_bsb'],
    '200000': ['uk_sort_code', 'au_bsb'],
    '00012-003': ['ca_transit'],
    HDFC0000001: ['ifsc'],
    CHASUS33: ['bic'],
    deutdeff500: ['bic'],
  }
  for (const [routing, possible_types] of Object.entries(types)) {
    const answer = await answerOf('routing', routing)
    t.match(answer, { valid: true, type: possible_types[0], verified_by: 'format', errors: [] }, routing)
    t.same(answer['possible_types'], possible_types, routing)
  }
  t.match(await answerOf('routing', 'CHASXX33'), {
    valid: false,
    type: 'bic',
    country: null,
    errors: ['invalid_bic'],
  })
  for (const input of ['12', 'abc', ' ', '0'.repeat(12), '١٢٣٤٥٦٧٨٩']) {
    t.match(await answerOf('routing', input), { valid: false, type: null, errors: ['unknown_format'] }, input)
  }
})

t.test('answers and counts every given identifier, and puts null for the others', async (t) => {
  const body = await bodyOf({ iban: 'NL91ABNA0417164300', vat: 'DE123456789' })
  t.match(body, { iban: { valid: true }, vat: { valid: false }, checks: { requested: 2, valid: 1 } })
  t.equal(body['card_bin'], null)
  t.equal(body['routing'], null)
  t.same(await bodyOf({ iban: 'NL91ABNA0417164300', vat: 'DE123456789' }), body, 'and the same again')
})

t.test('refuses a request without any identifier', async (t) => {
  await t.rejects(
    bodyOf({}),
    new InvalidParameter('iban', 'provide at least one of iban, card_bin, vat, routing'),
  )
})

t.test('shows validity and country or brand only in the preview', async (t) => {
  const body = await bodyOf({ iban: 'NL91ABNA0417164300', card_bin: '4111', vat: 'DE123456789' })
  t.same(finid.preview(body), {
    iban: { valid: true, country: 'NL' },
    card_bin: { valid: true, brand: 'visa' },
    vat: { valid: false, country: 'DE' },
    routing: null,
    checks: { requested: 3, valid: 2 },
  })
})

t.test('publishes an example that equals the handler’s answer', async (t) => {
  const example = new URL('../../../../../src/service/handlers/util/finid.example.json', import.meta.url)
  const given = {
    iban: 'DE89370400440532013000',
    card_bin: '424242',
    vat: 'DE136695976',
    routing: '021000021',
  }
  t.same(await bodyOf(given), JSON.parse(readFileSync(example, 'utf8')))
})

t.test('knows that nine zeros are no routing number, and Hipercard', async (t) => {
  t.match(checkRouting('000000000'), { valid: false, type: 'aba' })
  t.match(checkCardBin('606282'), { valid: true, brand: 'hipercard' })
})
