/**
 * Free mail providers and typical misspellings of their domains. From the providers' own registration pages,
 * 2026-11; editorial, and not complete.
 */
export const FREE_PROVIDERS: ReadonlySet<string> = new Set(
  (
    'gmail.com googlemail.com yahoo.com yahoo.co.uk yahoo.co.jp yahoo.fr yahoo.de yahoo.it yahoo.es yahoo.ca yahoo.in ' +
    'yahoo.com.br ymail.com rocketmail.com aol.com hotmail.com hotmail.co.uk hotmail.fr hotmail.de hotmail.it ' +
    'hotmail.es outlook.com outlook.de outlook.fr outlook.es outlook.it live.com live.co.uk live.fr live.nl msn.com ' +
    'icloud.com me.com mac.com proton.me protonmail.com pm.me tutanota.com tuta.com gmx.com gmx.de gmx.net gmx.at ' +
    'gmx.ch web.de t-online.de freenet.de mail.com email.com mail.ru inbox.ru bk.ru list.ru yandex.ru yandex.com ' +
    'rambler.ru ukr.net qq.com foxmail.com 163.com 126.com sina.com sohu.com yeah.net naver.com daum.net hanmail.net ' +
    'orange.fr wanadoo.fr free.fr laposte.net sfr.fr libero.it virgilio.it tiscali.it wp.pl o2.pl onet.pl interia.pl ' +
    'seznam.cz centrum.cz zoho.com zohomail.com fastmail.com hey.com hushmail.com uol.com.br bol.com.br terra.com.br ' +
    'rediffmail.com bigpond.com comcast.net verizon.net att.net sbcglobal.net bellsouth.net cox.net btinternet.com'
  ).split(' '),
)

/** Names of which a slip is worth a question; long enough that few other names are near. */
export const OFTEN_MISTYPED: readonly string[] = [
  'gmail.com',
  'yahoo.com',
  'hotmail.com',
  'outlook.com',
  'icloud.com',
  'googlemail.com',
  'protonmail.com',
  'comcast.net',
]

/** Valid domains of others that differ from a provider by one letter. */
export const NO_SLIPS: ReadonlySet<string> = new Set([
  'cloud.com',
  'gail.com',
  'gmail.de',
  'hotmail.net',
  'mailbox.org',
  'yahoo.net',
])

/** Endings that are typed for `com` and `net`; the first four are countries with few mailboxes. */
export const ENDING_SLIPS: Readonly<Record<string, readonly string[]>> = {
  com: ['co', 'cm', 'om', 'cam', 'con', 'cmo', 'ocm', 'comm', 'coom', 'cpm', 'vom', 'xom', 'c'],
  net: ['ne', 'nte', 'ent', 'nett', 'met', 'bet'],
}

/** Local parts that a group reads, not a person: RFC 2142 and common usage. */
export const ROLES: ReadonlySet<string> = new Set(
  (
    'info marketing sales support abuse noc security postmaster hostmaster usenet news webmaster www uucp ftp ' +
    'admin administrator billing accounts accounting contact help helpdesk hello office team jobs careers hr ' +
    'recruiting press media noreply no-reply donotreply do-not-reply mailer-daemon root sysadmin service feedback ' +
    'enquiries inquiries orders order shop privacy legal compliance dpo dmarc newsletter subscribe unsubscribe ' +
    'spam staff all everyone reception finance invoices ' +
    // German, French, Spanish, Portuguese, Italian, Dutch, Polish
    'kontakt vertrieb buchhaltung rechnung rechnungen bewerbung bewerbungen personal verwaltung empfang datenschutz presse ' +
    'bestellung kundendienst kundenservice buero sekretariat ' +
    'contacto ventas facturacion administracion soporte empleo recepcion pedidos prensa atencion secretaria ' +
    'commercial comptabilite facturation recrutement secretariat accueil commandes direction presse service-client ' +
    'contato vendas financeiro atendimento comercial suporte faturamento rh compras ' +
    'contatti vendite amministrazione fatture assistenza segreteria ordini commerciale ufficio ' +
    'verkoop administratie facturen klantenservice receptie vacatures bestellingen ' +
    'biuro sprzedaz ksiegowosc faktury praca rekrutacja sekretariat zamowienia obsluga'
  ).split(' '),
)

/** Whose mail servers end so; from the providers' setup pages, 2026-11. */
export const MAIL_HOSTS: readonly (readonly [string, string])[] = [
  ['google.com', 'google'],
  ['googlemail.com', 'google'],
  ['outlook.com', 'microsoft'],
  ['mx.microsoft', 'microsoft'],
  ['pphosted.com', 'proofpoint'],
  ['mimecast.com', 'mimecast'],
  ['barracudanetworks.com', 'barracuda'],
  ['zoho.com', 'zoho'],
  ['zoho.eu', 'zoho'],
  ['messagingengine.com', 'fastmail'],
  ['protonmail.ch', 'proton'],
  ['yandex.net', 'yandex'],
  ['yandex.ru', 'yandex'],
  ['yahoodns.net', 'yahoo'],
  ['secureserver.net', 'godaddy'],
  ['icloud.com', 'apple'],
  ['me.com', 'apple'],
  ['mail.ru', 'mail.ru'],
  ['qq.com', 'tencent'],
  ['ovh.net', 'ovh'],
  ['ionos.com', 'ionos'],
  ['kundenserver.de', 'ionos'],
  ['amazonaws.com', 'amazon'],
  ['cloudflare.net', 'cloudflare'],
  ['mailgun.org', 'mailgun'],
]
