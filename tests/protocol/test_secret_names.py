"""Tests of the names that stand for secrets."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.protocol import secret_names
from mcphost.protocol.schemas import looks_secret


def words(text: str) -> list[str]:
    return text.split()


SECRET = words("""
    password passwd passphrase pwd userPassword user_password user-password PASSWORD password2
    secret clientSecret client_secret secrets my.secret CLIENT_SECRET
    token access_token accessToken authToken bearer_token x-auth-token apitoken jwt
    api_key apiKey APIKey API_KEY apikey api-keys secret_key private_key privateKey PrivateKeyPEM
    accessKeyId ssh_key signingKey encryption_key
    credential credentials awsCredentials Authorization authorization_header
    ssn SSN userSSN cvv cvv2 CVC pin PIN userPIN pin_code otp totp_code
    social_security_number cardNumber credit_card_number one-time-code verification_code

    card_numbers cardnumber cardNo card_num creditCard debit-card bankCardNumber card_expiry
    CVV cvvCode IBAN ibanNumber account_number accountNumber accountNumbers bank_account acct_no
    routing_number routingNo sort_code transitNumber
    seed_phrase seedPhrase seedphrase recoveryPhrase recovery_words mnemonic backup_codes
    connection_string connectionString database_url db-url connstr
    PIN cardPin mothers_maiden_name security_answers mfaCode authenticator_code
""")

SPOKEN = """
    Your card number, please / The number on your card: CVV / IBAN of the account / Sort code
    Enter your 12-word seed phrase / Connection string of the database / PIN of your card
    \uff30\uff29\uff2e / pass\u200bword

    Contraseña / Tu contraseña / clave / Clave de acceso / Número de la tarjeta / número de cuenta
    Código de seguridad / Frase semilla / Cadena de conexión

    Mot de passe / votre mot de passe / Numéro de carte bancaire / Numéro de compte / Code secret
    Cryptogramme visuel / Phrase de récupération / Clé privée / Jeton d'accès

    Senha / Palavra-passe / Número do cartão / número da conta / Código de segurança / Chave privada

    Passwort / Kennwort / Kartennummer / Kontonummer / Bankleitzahl / Prüfziffer / Geheimzahl
    Privater Schlüssel

    Kata sandi / Nomor kartu / Nomor rekening / Kunci privat

    密码 / 请输入密码 / 银行卡号 / 助记词 / 验证码 / 私钥 / 連接字串
    パスワード / カード番号 / 暗証番号 / 口座番号 / 秘密鍵
    पासवर्ड / कार्ड नंबर / खाता संख्या / ओटीपी
    كلمة المرور / رقم البطاقة / رقم الحساب / رمز التحقق
    পাসওয়ার্ড / কার্ড নম্বর / ওটিপি
    Пароль / Введите пароль / Номер карты / Номер счёта / ПИН-код / Секретный ключ / номер_карты
    پاس ورڈ / کارڈ نمبر
"""
"""Names that must be recognized, in English, Spanish, French, Portuguese, German, Indonesian,
Chinese, Japanese, Hindi, Arabic, Bengali, Russian and Urdu."""

UNSUSPECTED = """
    Shipping address / Your opinion / pineapple / discarded / scorecard / The account's name
    How many tokens? / random seed / A search phrase / connection name / Number of cards
    Which account is it? / routing / The string to look for / database

    Palabra clave / clavel / Número de pedido / Cuenta / contra / Tarjeta
    Mot / passe-temps / Numéro de commande / Carte du restaurant / identifiant
    Senhor / passeio / Número do pedido / conta
    Zahl / Konto / Karte / Schlüssel / Nummer der Bestellung
    Nomor pesanan / kartu / rekening
    订单号 / 号码 / 密度 / 账户名 / 注文番号 / カード / 口座名
    खाता / नंबर / कार्ड / حساب / رقم الطلب / البطاقة / কার্ড / অর্ডার নম্বর
    Секретарь / Номер заказа / карта / счёт / کارڈ / آرڈر نمبر
"""
"""Names that must not be recognized, in the same languages."""


def lines(text: str) -> list[str]:
    return [part.strip() for line in text.splitlines() for part in line.split("/") if part.strip()]


HARMLESS = words("""
    max_tokens maxTokens tokens tokenizer tokenize token_count tokenLimit token_type token_budget
    page_token nextPageToken next_token continuationToken max_token
    pinned pinning spinner opinion pins
    passenger compass bypass passed pass
    secretary keyboard key keys primary_key foreignKey keyName monkey cacheKey
    name region text id order_number card number security
    shipping opinion pineapple account_name accountId account_type discard scorecard postcard_message
    seed random_seed search_phrase connection connection_name string routing routing_key iBanner
    number_of_cards recovery_time backup_schedule database db_name verification login_name sms
""")


@pytest.mark.parametrize("name", SECRET)
def test_a_name_of_a_secret_is_recognised(name):
    assert looks_secret(name)


@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_name_is_left_alone(name):
    assert not looks_secret(name)


@pytest.mark.parametrize("text", ["Your API key", "The password", "Card number", "PIN"])
def test_words_of_a_title_count_too(text):
    assert looks_secret(text)


@pytest.mark.parametrize("text", lines(SPOKEN))
def test_secrets_and_payment_credentials_are_known_in_many_languages(text):
    assert looks_secret(text)


@pytest.mark.parametrize("text", lines(UNSUSPECTED))
def test_what_only_resembles_one_is_left_alone_in_all_of_them(text):
    assert not looks_secret(text)


@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_is_a_name(text):
    assert looks_secret(text) in (True, False)


def test_each_language_has_a_table_of_purposes_that_are_read():
    text = Path(secret_names.__file__).with_suffix(".txt").read_text()
    tables = [table.splitlines()[1:] for table in text.split("\n[")[1:]]
    assert len(tables) == 13
    purposes = {line.partition(": ")[0] for lines in tables for line in lines if line}
    assert purposes == secret_names._TABLE.keys()
    code = Path(secret_names.__file__).read_text()
    assert {name for name in purposes if f'_TABLE["{name}"]' in code} == purposes
